-- What members have beside their scores, NULL: nothing; and what a command gave, '' to remove it, NULL: nothing, which an order id must have
-- in common with its repeats.
ALTER TABLE rank_log ADD COLUMN data varbinary(256);
ALTER TABLE rank_log ADD COLUMN given varbinary(256);
ALTER TABLE rank_lost ADD COLUMN data varbinary(256);
ALTER TABLE rank_lost ADD COLUMN given varbinary(256);
ALTER TABLE rank_score ADD COLUMN data varbinary(256);
ALTER TABLE rank_final ADD COLUMN data varbinary(256);
