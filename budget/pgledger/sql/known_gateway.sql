-- Writes down a gateway that another one knew, where that was lost.
--
-- $1 run  $2 name  $3 system identifier  $4 timeline  $5 start of the server  $6 heads
INSERT INTO noisegate.gateway (run, name, system, timeline, postmaster, heads) VALUES ($1, $2, $3, $4, $5, $6::json) ON CONFLICT DO NOTHING
