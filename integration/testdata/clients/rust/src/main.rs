// tokio-postgres: binary parameters and rows, prepared statements, portals, COPY, pipelines, transactions, cancel, notices.
use std::{env, future::Future, pin::pin, process::exit, sync::{Arc, Mutex}, time::Duration};

use chrono::NaiveDate;
use futures_util::{future::{poll_fn, try_join_all}, StreamExt, TryStreamExt};
use openssl::ssl::{SslConnector, SslMethod};
use postgres_openssl::MakeTlsConnector;
use rust_decimal::Decimal;
use tokio_postgres::{binary_copy::BinaryCopyOutStream, config::SslMode, error::SqlState, types::Type, AsyncMessage, Client, Config, Error, NoTls,
                     SimpleQueryMessage};

const BY_REGION: &str = "SELECT region, count(*) AS n, avg(amount) AS mean FROM visits GROUP BY region ORDER BY region";
const REGIONS: [&str; 4] = ["East", "North", "South", "West"];
const PEOPLE: f64 = 40000.0;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn env_of(name: &str) -> String { env::var(name).unwrap_or_else(|_| panic!("{name} is not set")) }

fn connector() -> MakeTlsConnector {
    let mut builder = SslConnector::builder(SslMethod::tls()).unwrap();
    builder.set_ca_file(env_of("PGSSLROOTCERT")).unwrap();
    MakeTlsConnector::new(builder.build())
}

async fn connect(notices: Arc<Mutex<Vec<String>>>) -> Result<Client, Error> {
    let encrypted = env_of("PGSSLMODE") != "disable";
    let mut config = Config::new();
    config.host(env_of("PGHOST")).port(env_of("PGPORT").parse().unwrap()).user(env_of("PGUSER")).password(env_of("PGPASSWORD"))
        .dbname(env_of("PGDATABASE")).options(env_of("PGOPTIONS")).application_name("script")
        .ssl_mode(if encrypted { SslMode::Require } else { SslMode::Disable });
    macro_rules! run {
        ($tls:expr) => {{
            let (client, mut connection) = config.connect($tls).await?;
            tokio::spawn(async move {
                let mut messages = pin!(futures_util::stream::poll_fn(move |cx| connection.poll_message(cx)));
                while let Some(Ok(message)) = messages.next().await {
                    if let AsyncMessage::Notice(n) = message { notices.lock().unwrap().push(n.message().to_string()) }
                }
            });
            client
        }};
    }
    Ok(if encrypted { run!(connector()) } else { run!(NoTls) })
}

async fn budget(c: &Client) -> f64 {
    for m in c.simple_query("SHOW noisegate.budget").await.unwrap() {
        if let SimpleQueryMessage::Row(row) = m { return row.get(0).unwrap().split(' ').nth(1).unwrap().parse().unwrap() }
    }
    panic!("no budget")
}

fn near(n: i64, expected: f64, off: f64) { assert!((n as f64 - expected).abs() <= off, "{n} is not near {expected}") }

fn state(e: &Error) -> Option<&SqlState> { e.code() }

fn refused<T>(outcome: Result<T, Error>, code: &str) -> Error {
    match outcome {
        Ok(_) => panic!("answered, want {code}"),
        Err(e) => { assert_eq!(state(&e).map(SqlState::code), Some(code), "{e:?}"); e }
    }
}

// check prints whether a block holds: it fails with what it returns, and by its panic.
async fn check(failures: &Mutex<u32>, name: &str, block: impl Future<Output = Outcome>) {
    let mut block = pin!(block);
    let outcome = poll_fn(|cx| match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| block.as_mut().poll(cx))) {
        Ok(poll) => poll,
        Err(_) => std::task::Poll::Ready(Err("an assertion failed".into())),
    }).await;
    match outcome {
        Ok(()) => println!("ok {name}"),
        Err(e) => { *failures.lock().unwrap() += 1; println!("FAIL {name} {e:?}") }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if env::args().nth(1).as_deref() == Some("--version") { return println!("{}", env!("CARGO_PKG_VERSION")) }
    let failures = Mutex::new(0);
    let notices = Arc::new(Mutex::new(Vec::new()));
    let mut client = connect(notices.clone()).await.expect("connect");
    let statement = client.prepare(BY_REGION).await.expect("prepare");
    check(&failures, "columns are described before the question is asked", async {
        let told: Vec<_> = statement.columns().iter().map(|c| (c.name(), c.type_().clone())).collect();
        assert_eq!(told, [("region", Type::TEXT), ("n", Type::INT8), ("mean", Type::NUMERIC)]);
        assert_eq!(budget(&client).await, 30.0);
        Ok(())
    }).await;
    let rows = client.query(&statement, &[]).await.expect("query");
    check(&failures, "binary rows", async {
        for (row, region) in rows.iter().zip(REGIONS) {
            assert_eq!(row.get::<_, &str>(0), region);
            near(row.get(1), PEOPLE / 4.0, 9900.0);
            assert!(row.get::<_, Decimal>(2) > Decimal::ZERO);
        }
        assert_eq!(rows.len(), 4);
        Ok(())
    }).await;
    check(&failures, "the notice of a charge", async {
        let told = notices.lock().unwrap().clone();
        assert!(told.len() == 1 && told[0].contains("spent ε 0.1; ε 29.9 left"), "{told:?}");
        Ok(())
    }).await;
    check(&failures, "a replay is free", async {
        let again = client.query(BY_REGION, &[]).await?;
        assert_eq!(again[3].get::<_, i64>("n"), rows[3].get::<_, i64>("n"));
        assert_eq!(budget(&client).await, 29.9);
        Ok(())
    }).await;
    check(&failures, "types of parameters are inferred", async {
        let s = client.prepare("SELECT count(*) AS n FROM visits WHERE region = $1 AND day >= $2 AND amount < $3").await?;
        assert_eq!(s.params(), [Type::TEXT, Type::DATE, Type::NUMERIC]);
        let day = NaiveDate::from_ymd_opt(2025, 1, 1).unwrap();
        near(client.query_one(&s, &[&"East", &day, &Decimal::new(4995, 1)]).await?.get(0), PEOPLE / 4.0, 4000.0);
        Ok(())
    }).await;
    check(&failures, "an array as parameter", async {
        let row = client.query_one("SELECT count(*) AS n FROM visits WHERE region = ANY($1)", &[&vec!["East", "West"]]).await?;
        near(row.get(0), PEOPLE / 2.0, 4000.0);
        Ok(())
    }).await;
    check(&failures, "typed parameters", async {
        let row = client.query_typed("SELECT count(*) AS n FROM people WHERE age >= $1", &[(&17i32, Type::INT4)]).await?;
        near(row[0].get(0), PEOPLE, 800.0);
        Ok(())
    }).await;
    check(&failures, "ends of intervals as outputs", async {
        let row = client.query_one("SELECT count(*) AS n, noise_interval_low(n) AS low, noise_interval_high(n) AS high FROM people WHERE age >= 17",
            &[]).await?;
        let (n, low, high): (i64, Decimal, Decimal) = (row.get(0), row.get(1), row.get(2));
        assert!(low < Decimal::from(n) && Decimal::from(n) < high, "{low} {n} {high}");
        Ok(())
    }).await;
    check(&failures, "a pipeline", async {
        let before = budget(&client).await;
        let texts: Vec<_> = (0..5).map(|i| format!("SELECT count(*) AS n FROM people WHERE age >= {}", 17 + i)).collect();
        for answer in try_join_all(texts.iter().map(|t| client.query_one(t.as_str(), &[]))).await? { near(answer.get(0), PEOPLE, 20000.0) }
        assert!((before - budget(&client).await - 0.4).abs() < 1e-9, "the first was bought before");
        Ok(())
    }).await;
    check(&failures, "a portal, row by row", async {
        let t = client.transaction().await?;
        let portal = t.bind(&statement, &[]).await?;
        let (first, second) = (t.query_portal(&portal, 3).await?, t.query_portal(&portal, 3).await?);
        assert_eq!((first.len(), second.len()), (3, 1));
        t.commit().await?;
        Ok(())
    }).await;
    check(&failures, "a transaction that is rolled back keeps its release", async {
        let before = budget(&client).await;
        let t = client.transaction().await?;
        t.query_one("SELECT count(*) AS n FROM regions, people WHERE age > 60 AND name = 'East'", &[]).await.ok();
        t.rollback().await?;
        assert!(budget(&client).await <= before);
        Ok(())
    }).await;
    check(&failures, "a savepoint", async {
        let mut t = client.transaction().await?;
        let inner = t.savepoint("s").await?;
        refused(inner.query("SELECT age FROM people", &[]).await, "42501");
        inner.rollback().await?;
        assert_eq!(t.query_one("SELECT 1", &[]).await?.get::<_, i32>(0), 1);
        t.commit().await?;
        Ok(())
    }).await;
    check(&failures, "rows of people are refused, readably", async {
        let before = budget(&client).await;
        let e = refused(client.query("SELECT age FROM people LIMIT 5", &[]).await, "42501");
        let e = e.as_db_error().unwrap();
        assert!(e.detail() == Some("policy/not-aggregate") && e.hint().is_some() && e.position().is_some(), "{e:?}");
        assert_eq!(budget(&client).await, before);
        Ok(())
    }).await;
    check(&failures, "writing is refused", async {
        refused(client.execute("DELETE FROM people", &[]).await, "25006");
        refused(client.copy_in::<_, &[u8]>("COPY people FROM STDIN").await.map(|_| ()), "25006");
        Ok(())
    }).await;
    check(&failures, "COPY as text", async {
        let lines: Vec<_> = client.copy_out("COPY (SELECT region, count(*) AS n FROM visits GROUP BY region) TO STDOUT").await?.try_collect().await?;
        assert_eq!(lines.len(), 4);
        Ok(())
    }).await;
    check(&failures, "COPY in binary", async {
        let out = client.copy_out(&*format!("COPY ({BY_REGION}) TO STDOUT (FORMAT binary)")).await?;
        let lines: Vec<_> = BinaryCopyOutStream::new(out, &[Type::TEXT, Type::INT8, Type::NUMERIC]).try_collect().await?;
        assert_eq!(lines.iter().map(|l| l.get::<&str>(0)).collect::<Vec<_>>(), REGIONS);
        assert_eq!(lines[0].get::<i64>(1), rows[0].get::<_, i64>(1));
        Ok(())
    }).await;
    check(&failures, "several statements in one message", async {
        let told = client.simple_query("SET noisegate.epsilon = 0.2; SELECT 1 AS one; SHOW noisegate.epsilon").await?;
        let rows: Vec<_> = told.iter().filter_map(|m| if let SimpleQueryMessage::Row(r) = m { r.get(0) } else { None }).collect();
        assert_eq!(rows, ["1", "0.2"]);
        Ok(())
    }).await;
    check(&failures, "names and types", async {
        let rows = client.query("SELECT c.relname, format_type(a.atttypid, a.atttypmod) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid \
            WHERE c.relname = $1 AND a.attnum > 0 ORDER BY a.attnum", &[&"visits"]).await?;
        assert_eq!(rows.iter().map(|r| r.get::<_, &str>(1)).collect::<Vec<_>>(), ["date", "text", "numeric(8,2)"]);
        Ok(())
    }).await;
    check(&failures, "a cancel request", async {
        let (token, encrypted) = (client.cancel_token(), env_of("PGSSLMODE") != "disable");
        if encrypted { token.cancel_query(connector()).await? } else { token.cancel_query(NoTls).await? }
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(client.query_one("SELECT 1", &[]).await?.get::<_, i32>(0), 1);
        Ok(())
    }).await;
    check(&failures, "EXPLAIN", async {
        let rows = client.query("EXPLAIN SELECT avg(age) FROM people", &[]).await?;
        assert!(rows[0].get::<_, &str>(0).starts_with("Release  (cost=0.00.."));
        Ok(())
    }).await;
    let failed = *failures.lock().unwrap() > 0;
    exit(failed as i32)
}
