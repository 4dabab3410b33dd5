-- How fresh and how whole what is known is.

-- details
SELECT c.source, c.namespace, c.presence, c.presence_reason, c.detail, c.detail_reason, c.records,
       c.presence = 'complete' AND c.detail = 'complete' AS whole, r.published_at AS since_at
FROM {coverage} c
JOIN {source} s ON s.name = c.source AND c.valid_from <= s.revision AND (c.valid_to IS NULL OR c.valid_to > s.revision)
LEFT JOIN {revision} r ON r.source = c.source AND r.number = c.valid_from
ORDER BY c.source, c.namespace

-- tiles
WITH places AS (
  SELECT max(d.checked_at) AS checked_at FROM {current} c LEFT JOIN {dataset} d ON d.canonical = c.canonical AND d.access = c.access
  WHERE c.is_table = 1 AND c.canonical IS NOT NULL GROUP BY c.canonical, c.store)
SELECT (SELECT count(*) FROM {source}) AS `sources`,
       (SELECT count_if(state <> 'ok') FROM {source}) AS `not read in full`,
       (SELECT round((:now - min(crawled_at)) / 3600, 1) FROM {source}) AS `hours since the oldest crawl`,
       (SELECT count_if(NOT whole) FROM {details}) AS `namespaces with gaps`,
       (SELECT count_if(checked_at IS NULL) FROM places) AS `locations never opened`

-- bars: Hours since each source was read
SELECT name AS source, round((:now - crawled_at) / 3600, 1) AS hours, impl, state, revision, crawled_at, published_at AS changed_at,
       message
FROM {source} ORDER BY crawled_at NULLS FIRST, source

-- bars: Namespaces by what their listing proved
SELECT CASE WHEN presence <> 'complete' THEN presence WHEN detail <> 'complete' THEN concat('tables ', detail) ELSE 'complete' END AS listing,
       count(*) AS namespaces
FROM {details} GROUP BY 1 ORDER BY namespaces DESC, listing

-- bars: When locations were last opened
SELECT age AS opened, count(*) AS locations FROM (
  SELECT CASE WHEN checked_at IS NULL THEN 'never' WHEN :now - checked_at < 86400 THEN 'within a day'
              WHEN :now - checked_at < 7 * 86400 THEN 'within a week' WHEN :now - checked_at < 30 * 86400 THEN 'within a month'
              ELSE 'longer ago' END AS age,
         checked_at
  FROM (SELECT max(d.checked_at) AS checked_at FROM {current} c
        LEFT JOIN {dataset} d ON d.canonical = c.canonical AND d.access = c.access
        WHERE c.is_table = 1 AND c.canonical IS NOT NULL GROUP BY c.canonical, c.store))
GROUP BY age ORDER BY max(checked_at) DESC NULLS LAST

-- table: Namespaces that were not read in full
SELECT source, namespace, presence, detail, coalesce(nullif(presence_reason, ''), detail_reason) AS reason, since_at
FROM {details} WHERE NOT whole ORDER BY source, namespace

-- table: Runs that ended in the last 30 days
SELECT kind, state, count(*) AS runs, max(finished_at) AS last_at, round(percentile_approx(finished_at - started_at, 0.5), 1) AS `median seconds`
FROM {run} WHERE finished_at > :now - 30 * 86400 GROUP BY kind, state ORDER BY kind, runs DESC, state
