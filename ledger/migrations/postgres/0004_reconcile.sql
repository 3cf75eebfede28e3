-- Changes of a time, for rankcache reconcile. Rows come nearly in the order of their time, so that the bounds of
-- blocks are enough, and next to nothing is written for them.
CREATE INDEX IF NOT EXISTS rank_log_at ON rank_log USING brin (at) WITH (pages_per_range = 32, autosummarize = on);
