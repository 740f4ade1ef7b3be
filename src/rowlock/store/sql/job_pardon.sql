-- Take back the crash of jobs that were rescued from this worker: it was cut off, and has come back, so they did not kill it.
-- Which they are is told by the events of their rescues since :since. The error that the rescue left is rewritten in the same
-- statement, so that it is pardoned once, whatever has become of the job meanwhile.
with rescued as materialized (
    select event.job
    from rowlock.events as event
    where event.kind in ('rescued', 'poisoned')
        and event.at >= rowlock.now() - :since::interval
        and event.details ->> 'worker' = :worker
)
update rowlock.jobs
set crashes = crashes - 1,
    state = case when waits_for = 'suspect' and crashes <= :suspect::integer then 'ready' else state end,
    reason = case when waits_for = 'suspect' and crashes <= :suspect::integer then null else reason end,
    waits_for = case when waits_for = 'suspect' and crashes <= :suspect::integer then null else waits_for end,
    errors = array(
        select case
            when error.value ->> 'type' = 'WorkerLost' and error.value ->> 'worker' = :worker
            then (error.value::jsonb || jsonb_build_object(
                'type', 'WorkerCutOff', 'message', 'its worker could not reach the database, and has come back'
            ))::json
            else error.value
        end
        from unnest(errors) with ordinality as error (value, place)
        order by error.place
    )
where id = any(array(select job from rescued))
    and crashes > 0
    and exists (
        select from unnest(errors) as error (value)
        where error.value ->> 'type' = 'WorkerLost' and error.value ->> 'worker' = :worker
    )
returning id;
