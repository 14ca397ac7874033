import java.io.StringWriter;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.sql.*;
import java.util.*;
import org.postgresql.PGConnection;
import org.postgresql.PGStatement;

/** pgjdbc as DBeaver, Metabase and the like use it. */
public class Pgjdbc {
    static final String BY_REGION = "SELECT region, count(*) AS n, avg(amount) AS mean FROM visits GROUP BY region ORDER BY region";
    static final List<String> REGIONS = List.of("East", "North", "South", "West");
    static final int PEOPLE = 40000;
    static boolean failed;

    interface Work { void run() throws Exception; }

    static void check(String name, Work work) {
        try {
            work.run();
            System.out.println("ok " + name);
        } catch (Throwable e) {
            failed = true;
            Throwable cause = e.getCause() == null ? e : e.getCause();
            String state = cause instanceof SQLException s ? s.getSQLState() : "";
            System.out.println("FAIL " + name + ": " + state + " " + String.valueOf(cause).replace("\n", " | "));
        }
    }

    static void that(boolean holds, Object detail) {
        if (!holds) throw new AssertionError(String.valueOf(detail));
    }

    static void near(double n, double expected, double off) { that(Math.abs(n - expected) <= off, n + ", not " + expected); }

    static Connection connect(String... more) throws SQLException {
        Map<String, String> env = System.getenv();
        Properties p = new Properties();
        p.setProperty("user", env.get("PGUSER"));
        p.setProperty("password", env.get("PGPASSWORD"));
        p.setProperty("options", env.get("PGOPTIONS"));
        p.setProperty("sslmode", env.get("PGSSLMODE"));
        p.setProperty("sslrootcert", env.get("PGSSLROOTCERT"));
        for (int i = 0; i < more.length; i += 2) p.setProperty(more[i], more[i + 1]);
        return DriverManager.getConnection("jdbc:postgresql://" + env.get("PGHOST") + ":" + env.get("PGPORT") + "/" + env.get("PGDATABASE"), p);
    }

    static List<List<Object>> rows(ResultSet r) throws SQLException {
        List<List<Object>> all = new ArrayList<>();
        int n = r.getMetaData().getColumnCount();
        while (r.next()) {
            List<Object> row = new ArrayList<>();
            for (int i = 1; i <= n; i++) row.add(r.getObject(i));
            all.add(row);
        }
        return all;
    }

    static List<List<Object>> ask(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) { return rows(r); }
    }

    static double budget(Connection c) throws SQLException {
        return Double.parseDouble(ask(c, "SHOW noisegate.budget").get(0).get(0).toString().split(" ")[1]);
    }

    static SQLException refused(Connection c, String state, String sql) {
        try {
            ask(c, sql);
        } catch (SQLException e) {
            that(state.equals(e.getSQLState()), e.getSQLState() + " " + e.getMessage());
            return e;
        }
        throw new AssertionError("answered");
    }

    static List<Object> column(List<List<Object>> rows, int i) { return rows.stream().map(r -> r.get(i)).toList(); }

    public static void main(String[] args) throws Exception {
        if (args.length > 0) {
            System.out.println(org.postgresql.util.DriverInfo.DRIVER_VERSION);
            return;
        }
        Connection c = connect();
        DatabaseMetaData meta = c.getMetaData();
        List<List<Object>> first = new ArrayList<>();
        check("the connection", () -> that(c.isValid(5) && c.getCatalog().equals("census") && "public".equals(c.getSchema()), c.getSchema()));
        check("rows, types and the warning of a charge", () -> {
            try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(BY_REGION)) {
                ResultSetMetaData m = r.getMetaData();
                that(m.getColumnType(1) == Types.VARCHAR && m.getColumnType(2) == Types.BIGINT && m.getColumnType(3) == Types.NUMERIC, m);
                first.addAll(rows(r));
                that(column(first, 0).equals(REGIONS) && first.get(0).get(1) instanceof Long && first.get(0).get(2) instanceof BigDecimal, first);
                SQLWarning w = s.getWarnings();
                that(w != null && w.getMessage().contains("spent ε 0.1; ε 29.9 left") && w.getNextWarning() == null, w);
            }
        });
        check("a replay is free", () -> {
            double before = budget(c);
            try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(BY_REGION)) {
                that(rows(r).equals(first), first);
                SQLWarning w = s.getWarnings();
                that(w != null && w.getMessage().contains("a replay of ") && w.getMessage().contains("spent nothing; ε 29.9 left")
                    && w.getNextWarning() == null, w);
            }
            that(budget(c) == before && before == 29.9, before);
        });
        // Methods of DatabaseMetaData that ask the server, and those that answer by themselves.
        Set<String> skipped = Set.of("getConnection", "unwrap", "isWrapperFor");
        for (Method method : Arrays.stream(DatabaseMetaData.class.getMethods()).sorted(Comparator.comparing(Method::getName)).toList()) {
            if (method.getParameterCount() == 0 && !skipped.contains(method.getName()) && method.getReturnType() == ResultSet.class) {
                check("DatabaseMetaData." + method.getName(), () -> rows((ResultSet) method.invoke(meta)));
            }
        }
        check("DatabaseMetaData: all methods without parameters or rows", () -> {
            for (Method method : DatabaseMetaData.class.getMethods()) {
                if (method.getParameterCount() == 0 && method.getReturnType() != ResultSet.class) {
                    try {
                        method.invoke(meta);
                    } catch (java.lang.reflect.InvocationTargetException e) {
                        that(e.getCause() instanceof SQLFeatureNotSupportedException, method.getName() + ": " + e.getCause());
                    }
                }
            }
        });
        check("DatabaseMetaData.getTables", () -> that(column(rows(meta.getTables(null, "public", "%", new String[] {"TABLE"})), 2)
            .equals(List.of("people", "regions", "visits")), "tables"));
        check("DatabaseMetaData.getTables of everything", () -> that(rows(meta.getTables(null, null, "%", null)).size() > 100, "tables"));
        check("DatabaseMetaData.getColumns", () -> that(column(rows(meta.getColumns(null, "public", "visits", "%")), 3)
            .equals(List.of("day", "region", "amount")), column(rows(meta.getColumns(null, "public", "visits", "%")), 3)));
        check("DatabaseMetaData.getColumns of everything", () -> that(rows(meta.getColumns(null, null, "%", "%")).size() > 1000, "columns"));
        check("DatabaseMetaData.getPrimaryKeys", () -> that(column(rows(meta.getPrimaryKeys(null, "public", "regions")), 3).equals(List.of("name")), ""));
        check("DatabaseMetaData.getImportedKeys", () -> rows(meta.getImportedKeys(null, "public", "visits")));
        check("DatabaseMetaData.getExportedKeys", () -> rows(meta.getExportedKeys(null, "public", "regions")));
        check("DatabaseMetaData.getCrossReference", () -> rows(meta.getCrossReference(null, "public", "regions", null, "public", "visits")));
        check("DatabaseMetaData.getIndexInfo", () -> that(rows(meta.getIndexInfo(null, "public", "regions", false, true)).size() == 1, "indexes"));
        check("DatabaseMetaData.getBestRowIdentifier", () -> rows(meta.getBestRowIdentifier(null, "public", "regions", 2, true)));
        check("DatabaseMetaData.getVersionColumns", () -> rows(meta.getVersionColumns(null, "public", "regions")));
        check("DatabaseMetaData.getColumnPrivileges", () -> rows(meta.getColumnPrivileges(null, "public", "people", "%")));
        check("DatabaseMetaData.getTablePrivileges", () -> rows(meta.getTablePrivileges(null, "public", "%")));
        check("DatabaseMetaData.getProcedures", () -> that(rows(meta.getProcedures(null, "public", "%")).isEmpty(), "procedures"));
        check("DatabaseMetaData.getProcedureColumns", () -> rows(meta.getProcedureColumns(null, "public", "%", "%")));
        check("DatabaseMetaData.getFunctions", () -> that(rows(meta.getFunctions(null, "public", "%")).isEmpty(), "functions"));
        check("DatabaseMetaData.getFunctionColumns", () -> rows(meta.getFunctionColumns(null, "public", "%", "%")));
        check("DatabaseMetaData.getUDTs", () -> that(column(rows(meta.getUDTs(null, "public", "%", null)), 2)
            .equals(List.of("people", "regions", "visits")), rows(meta.getUDTs(null, "public", "%", null))));
        check("DatabaseMetaData.getSchemas of one", () -> that(rows(meta.getSchemas(null, "public")).size() == 1, "schemas"));
        check("parameters", () -> {
            try (PreparedStatement s = c.prepareStatement("SELECT count(*) AS n FROM visits WHERE region = ? AND day >= ? AND amount < ?")) {
                s.setString(1, "East");
                s.setObject(2, java.time.LocalDate.of(2025, 1, 1));
                s.setBigDecimal(3, new BigDecimal("499.5"));
                near(((Number) rows(s.executeQuery()).get(0).get(0)).doubleValue(), PEOPLE / 4.0, 4000);
            }
        });
        check("java.sql.Date as parameter", () -> {
            try (PreparedStatement s = c.prepareStatement("SELECT count(*) AS n FROM visits WHERE day BETWEEN ? AND ?")) {
                s.setDate(1, java.sql.Date.valueOf("2025-01-01"));
                s.setDate(2, java.sql.Date.valueOf("2025-12-31"));
                near(((Number) rows(s.executeQuery()).get(0).get(0)).doubleValue(), PEOPLE, 4000);
            }
        });
        check("Timestamp as parameter", () -> {
            try (PreparedStatement s = c.prepareStatement("SELECT count(*) AS n FROM visits WHERE day >= ?")) {
                s.setTimestamp(1, Timestamp.valueOf("2025-01-01 00:00:00"));
                near(((Number) rows(s.executeQuery()).get(0).get(0)).doubleValue(), PEOPLE, 4000);
            }
        });
        check("an array as parameter", () -> {
            try (PreparedStatement s = c.prepareStatement("SELECT count(*) AS n FROM visits WHERE region = ANY(?)")) {
                s.setArray(1, c.createArrayOf("text", new String[] {"East", "West"}));
                near(((Number) rows(s.executeQuery()).get(0).get(0)).doubleValue(), PEOPLE / 2, 4000);
            }
        });
        check("the types of parameters", () -> {
            try (PreparedStatement s = c.prepareStatement("SELECT count(*) AS n FROM visits WHERE region = ? AND day >= ?")) {
                that(s.getParameterMetaData().getParameterType(1) == Types.VARCHAR && s.getParameterMetaData().getParameterType(2) == Types.DATE, "");
                that(s.getMetaData().getColumnName(1).equals("n"), "columns");
            }
        });
        check("eight executions: prepared by the server, then binary, all the same", () -> {
            try (PreparedStatement s = c.prepareStatement("SELECT count(*) AS n, avg(age) AS mean FROM people WHERE age >= ?")) {
                Set<List<List<Object>>> answers = new HashSet<>();
                for (int i = 0; i < 8; i++) {
                    s.setInt(1, 40);
                    answers.add(rows(s.executeQuery()));
                }
                that(answers.size() == 1 && s.unwrap(PGStatement.class).isUseServerPrepare(), answers);
            }
        });
        check("eight executions without parameters", () -> {
            try (PreparedStatement s = c.prepareStatement(BY_REGION)) {
                for (int i = 0; i < 8; i++) that(rows(s.executeQuery()).equals(first), i);
            }
        });
        check("binary transfer from the first", () -> {
            try (Connection b = connect("prepareThreshold", "-1"); PreparedStatement s = b.prepareStatement(
                "SELECT date_trunc('month', day) AS month, count(*) AS n, sum(amount) AS total FROM visits GROUP BY 1 ORDER BY 1")) {
                List<List<Object>> got = rows(s.executeQuery());
                that(got.size() == 12 && got.get(11).get(0) instanceof Timestamp && got.get(0).get(2) instanceof BigDecimal, got);
                that(rows(s.executeQuery()).equals(got), "another answer");
            }
        });
        check("constants of all types", () -> {
            try (Connection b = connect("prepareThreshold", "-1"); PreparedStatement s = b.prepareStatement(
                "SELECT true AS t, NULL::bool AS u, 1.5::float8 AS x, 2::int2 AS i, date '2025-02-03' AS d, 'ü' AS v, 12.50 AS m")) {
                that(rows(s.executeQuery()).toString().equals("[[true, null, 1.5, 2, 2025-02-03, ü, 12.50]]"), rows(s.executeQuery()));
            }
        });
        check("fetch size", () -> {
            try (Connection b = connect()) {
                b.setAutoCommit(false);
                try (PreparedStatement s = b.prepareStatement(BY_REGION)) {
                    s.setFetchSize(3);
                    that(rows(s.executeQuery()).equals(first), "rows");
                }
                b.commit();
            }
        });
        check("at most so many rows", () -> {
            try (Statement s = c.createStatement()) {
                s.setMaxRows(2);
                that(rows(s.executeQuery(BY_REGION)).size() == 2, "rows");
            }
        });
        check("a scrolling result", () -> {
            try (Statement s = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY); ResultSet r = s.executeQuery(BY_REGION)) {
                that(r.last() && r.getRow() == 4 && r.absolute(2) && r.getString(1).equals("North"), "place");
            }
        });
        check("simple protocol", () -> {
            try (Connection b = connect("preferQueryMode", "simple"); PreparedStatement s = b.prepareStatement(
                "SELECT count(*) AS n FROM visits WHERE region = ?")) {
                s.setString(1, "West");
                near(((Number) rows(s.executeQuery()).get(0).get(0)).doubleValue(), PEOPLE / 4.0, 4000);
            }
        });
        check("rows of people are refused", () -> {
            double before = budget(c);
            SQLException e = refused(c, "42501", "SELECT age FROM people");
            var m = ((org.postgresql.util.PSQLException) e).getServerErrorMessage();
            that("policy/not-aggregate".equals(m.getDetail()) && m.getHint() != null && m.getPosition() > 0, m);
            that(budget(c) == before, "charged");
        });
        check("an unknown column", () -> refused(c, "42703", "SELECT count(nothing) FROM people"));
        check("writing is refused", () -> refused(c, "25006", "DELETE FROM people"));
        check("savepoints", () -> {
            try (Connection b = connect()) {
                b.setAutoCommit(false);
                Savepoint p = b.setSavepoint("one");
                refused(b, "42501", "SELECT age FROM people");
                refused(b, "25P02", "SELECT 1");
                b.rollback(p);
                that(ask(b, "SELECT 1").get(0).get(0).equals(1), "one");
                b.releaseSavepoint(p);
                b.commit();
            }
        });
        check("autosave", () -> {
            try (Connection b = connect("autosave", "always")) {
                b.setAutoCommit(false);
                refused(b, "42501", "SELECT age FROM people");
                that(ask(b, "SELECT 1").get(0).get(0).equals(1), "one");
                b.commit();
            }
        });
        check("isolation levels and reading only", () -> {
            try (Connection b = connect()) {
                b.setReadOnly(true);
                for (int level : new int[] {Connection.TRANSACTION_READ_COMMITTED, Connection.TRANSACTION_SERIALIZABLE}) {
                    b.setTransactionIsolation(level);
                    that(b.getTransactionIsolation() == level, level);
                }
                b.setAutoCommit(false);
                that(ask(b, BY_REGION).equals(first), "rows");
            }
        });
        check("CopyManager", () -> {
            StringWriter out = new StringWriter();
            long n = c.unwrap(PGConnection.class).getCopyAPI().copyOut("COPY (" + BY_REGION + ") TO STDOUT (FORMAT csv, HEADER)", out);
            that(n == 4 && out.toString().startsWith("region,n,mean\nEast,"), n + " " + out);
        });
        check("a batch of questions is not a batch of changes", () -> {
            try (Statement s = c.createStatement()) {
                s.addBatch("SET application_name = 'batch'");
                s.addBatch("SET application_name = 'again'");
                that(s.executeBatch().length == 2, "batch");
            }
        });
        check("several statements", () -> {
            try (Statement s = c.createStatement()) {
                that(s.execute("SELECT 1; SELECT 2") && s.getMoreResults(), "results");
            }
        });
        check("a time-out", () -> {
            try (Statement s = c.createStatement()) {
                s.setQueryTimeout(30);
                that(rows(s.executeQuery(BY_REGION)).equals(first), "rows");
            }
        });
        check("schema and application name", () -> {
            c.setSchema("public");
            c.setClientInfo("ApplicationName", "clients");
            that(ask(c, "SHOW application_name").get(0).get(0).equals("clients"), "name");
        });
        check("names are quoted", () -> that(column(ask(c, "SELECT \"r\".\"name\" FROM \"public\".\"regions\" \"r\" ORDER BY 1"), 0).equals(REGIONS), ""));
        String byMonth = "SELECT DATE_TRUNC('month', \"visits\".\"day\") AS \"day\", COUNT(*) AS \"count\" FROM \"public\".\"visits\" "
            + "GROUP BY DATE_TRUNC('month', \"visits\".\"day\") ORDER BY DATE_TRUNC('month', \"visits\".\"day\") ASC";
        check("a count by month with quoted names", () -> that(ask(c, byMonth).size() == 12, "months"));
        check("columns with a schema, as Metabase writes them, are the same question", () -> that(
            ask(c, byMonth.replace("\"visits\".\"day\"", "\"public\".\"visits\".\"day\"")).equals(ask(c, byMonth)), "months"));
        check("a wrong token", () -> {
            try (Connection b = connect("password", "wrong")) {
                throw new AssertionError("connected");
            } catch (SQLException e) {
                that("28P01".equals(e.getSQLState()), e.getSQLState());
            }
        });
        c.close();
        System.exit(failed ? 1 : 0);
    }
}
