-- Which of these jobs there are, live or ended.
select rowlock.sent_before(:ids::uuid[]);
