-- The attempts of this worker whose jobs somebody has asked to cancel.
select token from rowlock.jobs where worker = :worker::uuid and cancel_at is not null and state = 'running';
