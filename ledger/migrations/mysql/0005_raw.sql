-- score is what a member was given, raw what Redis has, which checksums are over. In rank_log and rank_lost raw is null
-- in rows that are older than it, where it would be the score. Rows of older programs, which know of one score, are refused.
ALTER TABLE rank_score CHANGE COLUMN score raw double, ADD COLUMN score double;
UPDATE rank_score SET score = raw;
ALTER TABLE rank_score ADD CONSTRAINT rank_score_both CHECK ((score IS NULL) = (raw IS NULL));
ALTER TABLE rank_final CHANGE COLUMN score raw double NOT NULL, ADD COLUMN score double NOT NULL;
UPDATE rank_final SET score = CASE WHEN board IN (SELECT board FROM rank_final_board WHERE integers = 1) THEN floor(raw) ELSE raw END;
ALTER TABLE rank_log ADD COLUMN raw double;
ALTER TABLE rank_lost ADD COLUMN raw double;
