-- The signals to a workflow, live or ended, that nobody has taken, in the order in which they came.
select name, key, sent_at, payload::text
from (
    select signal.name, signal.key, signal.sent_at, signal.payload, signal.number
    from rowlock.signals as signal
    where signal.job = :id::uuid and signal.taken_at is null
    union all
    select stored.name, stored.key, stored.sent_at, one -> 'payload', stored.number
    from rowlock.history as past
    cross join lateral json_array_elements(past.steps -> 'signals') as one
    cross join lateral json_to_record(one) as stored (
        name text, key text, number integer, sent_at timestamptz, taken_at timestamptz
    )
    where past.id = :id::uuid and stored.taken_at is null
) as untaken
order by number;
