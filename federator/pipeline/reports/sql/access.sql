-- Who may do what, and who did what: tokens, and the sealed events of the audit record.

-- details
SELECT seq, at AS happened_at, kind, actor, run_id, subject FROM {audit_event} ORDER BY seq

-- tiles
SELECT (SELECT count(*) FROM {details}) AS `sealed events`,
       (SELECT count(*) FROM {audit_outbox}) AS `not sealed yet`,
       (SELECT count(DISTINCT actor) FROM {details}) AS `actors`,
       (SELECT count(DISTINCT actor) FROM {details} WHERE happened_at > :now - 30 * 86400) AS `actors in 30 days`,
       (SELECT count(*) FROM {token} WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)) AS `tokens that work`,
       (SELECT count(*) FROM {token} WHERE revoked_at IS NOT NULL OR expires_at <= :now) AS `tokens that ended`

-- table: Who may do what
SELECT t.name AS token, t.role, array_join(from_json(t.scopes, 'ARRAY<STRING>'), ', ') AS scopes,
       CASE WHEN t.revoked_at IS NOT NULL THEN concat('revoked by ', t.revoked_by) WHEN t.expires_at <= :now THEN 'expired' ELSE 'works' END AS state,
       t.created_by AS `created by`, t.created_at, t.expires_at, max(d.happened_at) AS last_did_at
FROM {token} t LEFT JOIN {details} d ON d.actor = concat('token:', t.name)
GROUP BY ALL ORDER BY state DESC, token

-- bars: Events by actor
SELECT actor, count(*) AS events, count(DISTINCT run_id) AS runs, count_if(kind IN ('write', 'own_write')) AS writes,
       count_if(kind LIKE 'plan%') AS plans, min(happened_at) AS first_at, max(happened_at) AS last_at
FROM {details} GROUP BY actor ORDER BY events DESC, actor

-- bars: Events by kind
SELECT replace(kind, '_', ' ') AS kind, count(*) AS events, count(DISTINCT actor) AS actors, max(happened_at) AS last_at
FROM {details} GROUP BY kind ORDER BY events DESC, kind

-- lines: Events a day
SELECT CAST(date_add(DATE'1970-01-01', CAST(floor(happened_at / 86400) AS INT)) AS STRING) AS day, 'events' AS what, count(*) AS events
FROM {details} WHERE happened_at > :now - 400 * 86400 GROUP BY 1 ORDER BY 1

-- table: What was decided and changed by hand, newest first
SELECT happened_at, actor, replace(kind, '_', ' ') AS what, subject, run_id AS run
FROM {details} WHERE kind NOT IN ('run_started', 'run_finished', 'write', 'plan') ORDER BY seq DESC
