DROP TABLE IF EXISTS rank_final;
CREATE TABLE IF NOT EXISTS rank_final (
  board  text COLLATE "C" NOT NULL,
  place  bigint NOT NULL,
  member text COLLATE "C" NOT NULL,
  score  double precision NOT NULL,
  end_at bigint NOT NULL,
  PRIMARY KEY (board, place)
);
CREATE INDEX IF NOT EXISTS rank_final_member ON rank_final (member, end_at, board);
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
