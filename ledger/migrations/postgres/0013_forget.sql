-- Members that are to be forgotten, with the last change that is: until their rows have a pseudonym.
CREATE TABLE IF NOT EXISTS rank_forget (
  board  text COLLATE "C" NOT NULL,
  member text COLLATE "C" NOT NULL,
  run    bigint NOT NULL,
  seq    bigint NOT NULL,
  at     bigint NOT NULL,
  PRIMARY KEY (board, member)
);
