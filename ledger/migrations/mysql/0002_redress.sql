ALTER TABLE rank_lost ADD COLUMN state smallint NOT NULL DEFAULT 0, ADD COLUMN reason varbinary(16), ADD COLUMN now_score double,
  ADD COLUMN posted_at bigint, ADD KEY rank_lost_state (state, board, run, seq);
ALTER TABLE rank_board ADD KEY rank_board_at (at, board, run);
INSERT IGNORE INTO rank_offset (topic, part, next) VALUES ('', 0, 0);
