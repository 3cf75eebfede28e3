-- What a run continues, and the first of its changes that does not stand: none of a new run until a later one begins.
ALTER TABLE rank_board ADD COLUMN after_run bigint NOT NULL DEFAULT 0;
ALTER TABLE rank_board ADD COLUMN end_seq bigint NOT NULL DEFAULT 9223372036854775807;
ALTER TABLE rank_lost DROP COLUMN posted_at;
ALTER TABLE rank_lost DROP COLUMN redressed_seq;
CREATE INDEX rank_lost_run ON rank_lost (board, run, seq);
DELETE FROM rank_offset WHERE topic = '';
