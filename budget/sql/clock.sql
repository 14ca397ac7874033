-- The server's clock.
SELECT clock_timestamp()
