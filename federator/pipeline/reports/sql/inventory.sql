-- What is declared where, and what lies there.

-- details
SELECT c.source, c.path, c.kind, c.location, coalesce(a.place, c.canonical) AS place, c.owner, c.native_id, c.problem,
       CASE WHEN c.canonical IS NULL THEN 'no location' ELSE coalesce(d.state, 'unverified') END AS state,
       d.version, d.rows, d.size AS bytes, d.fragments, d.format, d.changed_at, d.checked_at, r.published_at AS since_at,
       c.parent, c.store
FROM {current} c
LEFT JOIN {alias} a ON a.canonical = c.canonical
LEFT JOIN {dataset} d ON d.canonical = c.canonical AND d.access = c.access
LEFT JOIN {revision} r ON r.source = c.source AND r.number = c.valid_from
WHERE c.is_table = 1
ORDER BY c.source, c.path

-- tiles
WITH places AS (SELECT place, max(bytes) AS bytes, max(rows) AS rows, count(*) AS declared FROM {details} WHERE place IS NOT NULL GROUP BY place, store)
SELECT (SELECT count(*) FROM {source} WHERE revision > 0) AS `sources`,
       (SELECT count(*) FROM {current} WHERE is_table = 0) AS `namespaces`,
       (SELECT count(*) FROM {details}) AS `tables`,
       (SELECT count(*) FROM places) AS `datasets`,
       (SELECT count(*) FROM places WHERE declared > 1) AS `declared more than once`,
       (SELECT sum(rows) FROM places) AS `rows`,
       (SELECT sum(bytes) FROM places) AS `bytes`

-- bars: Tables by source
SELECT s.name AS source, count(d.path) AS tables, s.impl, count(DISTINCT d.parent) AS `namespaces with tables`,
       count_if(d.kind = 'managed_table') AS managed, count_if(d.kind = 'undescribed') AS undescribed
FROM {source} s LEFT JOIN {details} d ON d.source = s.name
GROUP BY s.name, s.impl ORDER BY tables DESC, source

-- bars: What opening the locations found
SELECT replace(state, '_', ' ') AS state, count(*) AS tables FROM {details} GROUP BY state ORDER BY tables DESC, state

-- bars: In how many catalogs a dataset is declared
SELECT concat(catalogs, CASE WHEN catalogs = 1 THEN ' catalog' ELSE ' catalogs' END) AS `declared in`, count(*) AS datasets
FROM (SELECT place, count(DISTINCT source) AS catalogs FROM {details} WHERE place IS NOT NULL GROUP BY place, store)
GROUP BY catalogs ORDER BY catalogs

-- bars: Tables by storage
SELECT regexp_extract(place, '^([A-Za-z0-9+.-]+:/*[^/]*)', 1) AS storage, count(*) AS tables
FROM {details} WHERE place IS NOT NULL GROUP BY 1 ORDER BY tables DESC, storage

-- bars: Tables by owner
SELECT coalesce(owner, '(nobody)') AS owner, count(*) AS tables FROM {details} GROUP BY 1 ORDER BY tables DESC, owner

-- table: The largest namespaces
SELECT source, parent AS namespace, count(*) AS tables, sum(bytes) AS bytes
FROM {details} GROUP BY source, parent ORDER BY tables DESC, source, namespace

-- table: The largest datasets
SELECT place AS location, max(bytes) AS bytes, max(rows) AS rows, count(*) AS declarations
FROM {details} WHERE bytes IS NOT NULL GROUP BY place, store ORDER BY bytes DESC, location
