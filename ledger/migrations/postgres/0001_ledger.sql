CREATE TABLE IF NOT EXISTS rank_log (
  board    text COLLATE "C" NOT NULL,
  run      bigint NOT NULL,
  seq      bigint NOT NULL,
  member   text COLLATE "C" NOT NULL,
  order_id text COLLATE "C",
  op       text NOT NULL,
  delta    double precision,
  score    double precision,
  sum      bigint,
  members  bigint NOT NULL,
  at       bigint NOT NULL,
  PRIMARY KEY (board, run, seq)
);
CREATE UNIQUE INDEX IF NOT EXISTS rank_log_order ON rank_log (board, member, order_id, op);
CREATE TABLE IF NOT EXISTS rank_lost (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  board    text COLLATE "C" NOT NULL,
  run      bigint NOT NULL,
  seq      bigint NOT NULL,
  member   text COLLATE "C" NOT NULL,
  order_id text COLLATE "C",
  op       text NOT NULL,
  delta    double precision,
  score    double precision,
  sum      bigint,
  members  bigint NOT NULL,
  at       bigint NOT NULL,
  lost_at  bigint NOT NULL,
  redressed_seq bigint
);
CREATE INDEX IF NOT EXISTS rank_lost_board ON rank_lost (board, member, order_id);
CREATE TABLE IF NOT EXISTS rank_score (
  board  text COLLATE "C" NOT NULL,
  member text COLLATE "C" NOT NULL,
  run    bigint NOT NULL,
  seq    bigint NOT NULL,
  score  double precision,
  PRIMARY KEY (board, member)
);
CREATE TABLE IF NOT EXISTS rank_board (
  board      text COLLATE "C" NOT NULL,
  run        bigint NOT NULL,
  class      text COLLATE "C" NOT NULL,
  dims       text COLLATE "C" NOT NULL,
  tag        text COLLATE "C" NOT NULL,
  state      smallint NOT NULL DEFAULT 0,
  base_run   bigint NOT NULL,
  begin_seq  bigint NOT NULL,
  first_seq  bigint NOT NULL,
  seq        bigint NOT NULL,
  sum        bigint,
  members    bigint NOT NULL,
  at         bigint NOT NULL,
  incomplete smallint NOT NULL DEFAULT 0,
  PRIMARY KEY (board, run)
);
CREATE INDEX IF NOT EXISTS rank_board_class ON rank_board (class, tag);
CREATE TABLE IF NOT EXISTS rank_final (
  board  text COLLATE "C" NOT NULL,
  place  bigint NOT NULL,
  member text COLLATE "C" NOT NULL,
  score  double precision NOT NULL,
  PRIMARY KEY (board, place)
);
CREATE INDEX IF NOT EXISTS rank_final_member ON rank_final (member, board);
CREATE TABLE IF NOT EXISTS rank_offset (
  topic text COLLATE "C" NOT NULL,
  part  int NOT NULL,
  next  bigint NOT NULL,
  PRIMARY KEY (topic, part)
);
CREATE TABLE IF NOT EXISTS rank_bad (
  topic  text COLLATE "C" NOT NULL,
  part   int NOT NULL,
  record bigint NOT NULL,
  reason text NOT NULL,
  value  bytea NOT NULL,
  PRIMARY KEY (topic, part, record)
);
