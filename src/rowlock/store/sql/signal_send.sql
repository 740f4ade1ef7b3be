-- Store a signal for a workflow, and wake it if it is parked; returns what became of it, the job, and how that ended.
-- Nothing is raised for a workflow that has ended or is not there: that would fail the caller's transaction.
select sent.answer, sent.job, sent.state
from rowlock.send_signal(:id::uuid, :target, :name, :payload::json, :key) as sent;
