-- score is what a member was given, raw what Redis has, which checksums are over. In rank_log and rank_lost raw is null
-- in rows that are older than it, where it would be the score. Rows of older programs, which know of one score, are refused.
ALTER TABLE rank_score RENAME COLUMN score TO raw;
ALTER TABLE rank_score ADD COLUMN score double precision;
UPDATE rank_score SET score = raw;
ALTER TABLE rank_score ADD CONSTRAINT rank_score_both CHECK ((score IS NULL) = (raw IS NULL));
ALTER TABLE rank_final RENAME COLUMN score TO raw;
ALTER TABLE rank_final ADD COLUMN score double precision;
UPDATE rank_final SET score = CASE WHEN board IN (SELECT board FROM rank_final_board WHERE integers = 1) THEN floor(raw) ELSE raw END;
ALTER TABLE rank_final ALTER COLUMN score SET NOT NULL;
ALTER TABLE rank_log ADD COLUMN raw double precision;
ALTER TABLE rank_lost ADD COLUMN raw double precision;
