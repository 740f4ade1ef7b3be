-- The latest signals to a workflow, live or ended, taken or not, in the order in which they came.
select name, key, sent_at, payload::text, taken_at
from (
    select name, key, sent_at, payload, taken_at, number
    from (
        select signal.name, signal.key, signal.sent_at, signal.payload, signal.taken_at, signal.number
        from rowlock.signals as signal
        where signal.job = :id::uuid
        union all
        select stored.name, stored.key, stored.sent_at, one -> 'payload', stored.taken_at, stored.number
        from rowlock.history as past
        cross join lateral json_array_elements(past.steps -> 'signals') as one
        cross join lateral json_to_record(one) as stored (
            name text, key text, number integer, sent_at timestamptz, taken_at timestamptz
        )
        where past.id = :id::uuid
    ) as all_of_them
    order by number desc
    limit :most::integer
) as latest
order by number;
