-- Where catalogs, or a catalog and its storage, have come to say different things.

-- details
SELECT kind, severity, source, subject, other, detail, resolved_at IS NULL AS open,
       first_seen AS first_seen_at, last_seen AS last_seen_at, resolved_at
FROM {drift} ORDER BY kind, subject, other

-- tiles
SELECT count_if(open) AS `open`, count_if(open AND severity = 'high') AS `high`,
       count_if(open AND severity = 'medium') AS `medium`, count_if(open AND severity = 'low') AS `low`,
       count_if(first_seen_at > :now - 7 * 86400) AS `found in 7 days`,
       count_if(resolved_at > :now - 7 * 86400) AS `resolved in 7 days`
FROM {details}

-- bars: Open drift by kind
SELECT replace(kind, '_', ' ') AS kind, count(*) AS open, first(severity) AS severity
FROM {details} WHERE open GROUP BY kind ORDER BY open DESC, kind

-- bars: Open drift by source
SELECT source, count(*) AS open, count_if(severity = 'high') AS high, count_if(severity = 'medium') AS medium,
       count_if(severity = 'low') AS low
FROM {details} WHERE open GROUP BY source ORDER BY open DESC, source

-- bars: How old open drift is
SELECT age, count(*) AS open FROM (
  SELECT CASE WHEN :now - first_seen_at < 86400 THEN 'a day' WHEN :now - first_seen_at < 7 * 86400 THEN 'a week'
              WHEN :now - first_seen_at < 30 * 86400 THEN 'a month' ELSE 'longer' END AS age,
         first_seen_at
  FROM {details} WHERE open)
GROUP BY age ORDER BY max(first_seen_at) DESC

-- table: The gravest, oldest first
SELECT severity, replace(kind, '_', ' ') AS kind, subject AS table, other AS against, detail, first_seen_at
FROM {details} WHERE open
ORDER BY CASE severity WHEN 'high' THEN 0 WHEN 'medium' THEN 1 ELSE 2 END, first_seen_at, subject, other
