-- What hides a member, as Redis has it: the serial of the hide or restore that stands, and behind it, of a hidden one, the raw score
-- that counts unseen, or -. NULL: it never was hidden.
ALTER TABLE rank_log ADD COLUMN veil varbinary(48);
ALTER TABLE rank_lost ADD COLUMN veil varbinary(48);
ALTER TABLE rank_score ADD COLUMN veil varbinary(48);
