-- What was asked with charges, whoever asked, in their order; NULL for one that does not exist.
--
-- $1 charges  $2 the list ends with the request with which it has so many bytes
SELECT q.request
FROM (SELECT a.place, c.request, coalesce(sum(octet_length(c.request::text)) OVER (ORDER BY a.place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
	FROM unnest($1::text[]) WITH ORDINALITY AS a (charge_id, place) LEFT JOIN noisegate.charge c USING (charge_id)) q
WHERE q.before < $2
ORDER BY q.place
