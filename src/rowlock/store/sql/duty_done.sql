-- Say that a duty whose turn we had is done.
update rowlock.duties set done = true where name = :duty returning name;
