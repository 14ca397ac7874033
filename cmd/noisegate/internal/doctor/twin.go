package doctor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"noisegate.example/catalog"
	"noisegate.example/cmd/noisegate/internal/config"
)

// twin looks at the database of a catalog twin, and at what its owner may do.
func (d *doctor) twin(ctx context.Context, name string, c *config.Dataset) {
	key := "datasets." + name + ".catalog_dsn"
	if c.CatalogDSN.IsZero() {
		if d.config.Wire.Listen != "" {
			d.warn(key, "name an empty database on a server without people's data: see the page /docs/catalog-twin",
				"is not set, but wire.listen is: clients that ask for names and types are refused (57P03)")
		}
		return
	}
	conn := d.connect(ctx, key, c.CatalogDSN)
	if conn == nil {
		return
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var database string
	var limit int
	var superuser, owns, roles, member bool
	if err := conn.QueryRow(ctx, `SELECT d.datname, d.datconnlimit, r.rolsuper, pg_catalog.pg_has_role(d.datdba, 'MEMBER'), r.rolcreaterole,
			EXISTS (SELECT 1 FROM pg_catalog.pg_roles t WHERE t.rolname = $1 AND pg_catalog.pg_has_role(t.oid, 'MEMBER'))
		FROM pg_catalog.pg_database d, pg_catalog.pg_roles r
		WHERE d.datname = pg_catalog.current_database() AND r.rolname = current_user`, catalog.TwinRole).
		Scan(&database, &limit, &superuser, &owns, &roles, &member); err != nil {
		d.failed(key, err, "")
		return
	}
	quoted := pgx.Identifier{database}.Sanitize()
	limited := fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT %d", quoted, catalog.TwinConnections)
	switch {
	case superuser:
		d.warn(key, "name a role that owns this database, and is no superuser", "its role is a superuser: no connection limit holds it back")
	case !owns:
		d.fail(key, "ALTER DATABASE "+quoted+" OWNER TO the role of this connection string",
			"its role does not own the database: the catalog twin cannot be built")
	case !member && !roles:
		d.fail(key, "CREATE ROLE "+catalog.TwinRole+" NOLOGIN, and grant it to the role of this connection string",
			"its role can neither become %s nor make it: the catalog twin cannot be built", catalog.TwinRole)
	case limit < 0, limit > catalog.TwinConnections:
		d.warn(key, limited, "the database has no connection limit of %d: the gateway sets it when it builds the twin", catalog.TwinConnections)
	case limit < catalog.TwinConnections/2:
		d.fail(key, limited, "the database lets in %d connections, the gateway opens up to %d", limit, catalog.TwinConnections/2)
	default:
		d.ok(key, "its role owns the database, which lets in %d connections", limit)
	}
}
