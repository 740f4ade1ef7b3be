-- Take back what a resend has inserted of jobs that had been inserted before, and have ended since.
select rowlock.take_back(:ids::uuid[]);
