-- The groups of a command whose class has feeds by groups: its order id is of these alone.
ALTER TABLE rank_log ADD COLUMN by_groups text;
ALTER TABLE rank_lost ADD COLUMN by_groups text;
