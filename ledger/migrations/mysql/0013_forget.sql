-- Members that are to be forgotten, with the last change that is: until their rows have a pseudonym.
CREATE TABLE IF NOT EXISTS rank_forget (
  board  varbinary(200) NOT NULL,
  member varbinary(128) NOT NULL,
  run    bigint NOT NULL,
  seq    bigint NOT NULL,
  at     bigint NOT NULL,
  PRIMARY KEY (board, member)
) ENGINE=InnoDB;
