-- Changes of a time, for rankcache reconcile.
ALTER TABLE rank_log ADD KEY rank_log_at (at);
