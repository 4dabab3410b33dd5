-- What mirrors have put where, whether both ends still stand, and what was done and refused.

-- details
SELECT l.mirror, concat(l.origin_source, '$', l.origin_path) AS origin, concat(l.target_source, '$', l.target_path) AS target,
       o.path IS NOT NULL AS origin_stands, t.path IS NOT NULL AS target_stands,
       CASE WHEN o.path IS NULL AND t.path IS NULL THEN 'both gone' WHEN o.path IS NULL THEN 'origin gone'
            WHEN t.path IS NULL THEN 'target gone' WHEN o.canonical <> t.canonical THEN 'elsewhere' ELSE 'in place' END AS state,
       l.location, l.run_id, l.updated_at
FROM {ledger} l
LEFT JOIN {current} o ON o.source = l.origin_source AND o.path = l.origin_path AND o.is_table = 1
LEFT JOIN {current} t ON t.source = l.target_source AND t.path = l.target_path AND t.is_table = 1
WHERE l.is_table = 1
ORDER BY mirror, target

-- tiles
SELECT (SELECT count(DISTINCT mirror) FROM {details}) AS `mirrors`,
       (SELECT count(*) FROM {details}) AS `copies`,
       (SELECT count_if(state = 'in place') FROM {details}) AS `in place`,
       (SELECT count_if(NOT origin_stands OR NOT target_stands) FROM {details}) AS `an end gone`,
       (SELECT count(*) FROM {journal} WHERE state = 'done' AND intent_at > :now - 7 * 86400) AS `writes in 7 days`,
       (SELECT count(*) FROM {journal} WHERE state = 'failed' AND intent_at > :now - 7 * 86400) AS `failed in 7 days`

-- bars: Copies by mirror
SELECT mirror, count(*) AS copies, count_if(state = 'in place') AS `in place`, count_if(NOT origin_stands) AS `origin gone`,
       count_if(NOT target_stands) AS `target gone`, max(updated_at) AS last_written_at
FROM {details} GROUP BY mirror ORDER BY copies DESC, mirror

-- table: Writes of the last 30 days
SELECT mirror, replace(action, '_', ' ') AS action, state, count(*) AS writes, max(intent_at) AS last_at
FROM {journal} WHERE intent_at > :now - 30 * 86400
GROUP BY mirror, action, state ORDER BY mirror, writes DESC, action, state

-- table: Refusals of each mirror's newest plan
SELECT mirror, refusal.reason AS reason, count(*) AS tables, min(refusal.target_path) AS `for instance`
FROM (SELECT mirror, explode(from_json(body, 'refusals ARRAY<STRUCT<reason STRING, target_path STRING>>').refusals) AS refusal
      FROM (SELECT *, row_number() OVER (PARTITION BY mirror ORDER BY created_at DESC, digest) AS nth FROM {plan}) WHERE nth = 1)
GROUP BY mirror, refusal.reason ORDER BY tables DESC, mirror, reason

-- table: Plans that wait for a decision
SELECT mirror, substr(digest, 1, 12) AS plan, created_at,
       array_join(from_json(body, 'held ARRAY<STRING>').held, '; ') AS held
FROM {plan} WHERE state = 'held' ORDER BY created_at, mirror

-- table: Copies of which an end is gone
SELECT mirror, origin, target, state, updated_at FROM {details}
WHERE NOT origin_stands OR NOT target_stands ORDER BY mirror, target
