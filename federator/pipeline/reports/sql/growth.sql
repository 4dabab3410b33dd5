-- How many tables there were, day by day (UTC), from the intervals in which each was there. What was removed from the history is not
-- counted: the days begin with the oldest revision that is kept.

-- details
WITH opened AS (
  SELECT v.source, v.path, greatest(v.valid_from, s.horizon) AS number, v.valid_from <= s.horizon AS base, 1 AS opened, 0 AS closed
  FROM {record} v JOIN {source} s ON s.name = v.source WHERE v.is_table = 1),
closed AS (
  SELECT source, path, valid_to AS number, false AS base, 0 AS opened, 1 AS closed
  FROM {record} WHERE is_table = 1 AND valid_to IS NOT NULL),
steps AS (
  SELECT source, path, number, bool_or(base) AS base, sum(opened) AS opened, sum(closed) AS closed
  FROM (SELECT * FROM opened UNION ALL SELECT * FROM closed) GROUP BY source, path, number),
daily AS (
  SELECT s.source, date_add(DATE'1970-01-01', CAST(floor(r.published_at / 86400) AS INT)) AS day,
         sum(opened - closed) AS net,
         count_if(opened = 1 AND closed = 0 AND NOT base) AS added,
         count_if(opened = 0 AND closed = 1) AS removed,
         count_if(opened = 1 AND closed = 1) AS changed
  FROM steps s JOIN {revision} r ON r.source = s.source AND r.number = s.number AND r.state = 'published'
  GROUP BY 1, 2),
days AS (
  SELECT source, explode(sequence(min(day), date_add(DATE'1970-01-01', CAST(floor(:now / 86400) AS INT)))) AS day
  FROM daily GROUP BY source)
SELECT days.source, CAST(days.day AS STRING) AS day,
       CAST(sum(coalesce(net, 0)) OVER (PARTITION BY days.source ORDER BY days.day) AS BIGINT) AS tables,
       coalesce(added, 0) AS added, coalesce(removed, 0) AS removed, coalesce(changed, 0) AS changed
FROM days LEFT JOIN daily ON daily.source = days.source AND daily.day = days.day
ORDER BY source, day

-- tiles
WITH total AS (SELECT day, sum(tables) AS tables, sum(added) AS added, sum(removed) AS removed FROM {details} GROUP BY day),
newest AS (SELECT max(day) AS day FROM total)
SELECT (SELECT max_by(tables, day) FROM total) AS `tables now`,
       (SELECT coalesce(sum(added), 0) FROM total, newest WHERE total.day > CAST(date_add(newest.day, -7) AS STRING)) AS `added in 7 days`,
       (SELECT coalesce(sum(removed), 0) FROM total, newest WHERE total.day > CAST(date_add(newest.day, -7) AS STRING)) AS `removed in 7 days`,
       (SELECT coalesce(sum(added), 0) FROM total, newest WHERE total.day > CAST(date_add(newest.day, -30) AS STRING)) AS `added in 30 days`,
       (SELECT coalesce(sum(removed), 0) FROM total, newest WHERE total.day > CAST(date_add(newest.day, -30) AS STRING)) AS `removed in 30 days`

-- lines: Tables by source
WITH ranked AS (
  SELECT source, row_number() OVER (ORDER BY max_by(tables, day) DESC, source) AS nth FROM {details} GROUP BY source)
SELECT d.day, CASE WHEN r.nth <= 6 THEN d.source ELSE 'all others' END AS source, sum(d.tables) AS tables
FROM {details} d JOIN ranked r ON r.source = d.source
WHERE d.day > CAST(date_add(DATE'1970-01-01', CAST(floor(:now / 86400) AS INT) - 400) AS STRING)
GROUP BY 1, 2 ORDER BY 2, 1

-- lines: Tables added and removed a day
SELECT day, what, sum(number) AS tables
FROM (SELECT day, stack(2, 'added', added, 'removed', removed) AS (what, number) FROM {details})
WHERE day > CAST(date_add(DATE'1970-01-01', CAST(floor(:now / 86400) AS INT) - 400) AS STRING)
GROUP BY day, what ORDER BY what, day

-- table: Months
SELECT month, sum(tables) AS `tables at its end`, sum(added) AS added, sum(removed) AS removed, sum(changed) AS changed
FROM (SELECT source, substr(day, 1, 7) AS month, max_by(tables, day) AS tables, sum(added) AS added, sum(removed) AS removed,
             sum(changed) AS changed FROM {details} GROUP BY source, substr(day, 1, 7))
GROUP BY month ORDER BY month DESC
