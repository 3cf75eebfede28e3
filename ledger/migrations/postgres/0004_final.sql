CREATE TABLE IF NOT EXISTS rank_final_board (
  board    text COLLATE "C" NOT NULL PRIMARY KEY,
  class    text COLLATE "C" NOT NULL,
  dims     text COLLATE "C" NOT NULL,
  tag      text COLLATE "C" NOT NULL,
  start_at bigint NOT NULL,
  end_at   bigint NOT NULL,
  run      bigint NOT NULL,
  seq      bigint NOT NULL,
  sum      bigint NOT NULL,
  members  bigint NOT NULL,
  integers smallint NOT NULL,
  file     text NOT NULL,
  made_at  bigint NOT NULL
);
CREATE INDEX IF NOT EXISTS rank_final_board_class ON rank_final_board (class, tag, board);
