-- Make an attempt's claim durable, and return its number: the timeline of the WAL, and which claim of the job it is.
-- A claim's commit does not wait for the disk, so after a crash its number may be given again; what this writes lies behind
-- it in the WAL, and is waited for. After a failover that lost it the timeline is a higher one.
update rowlock.jobs
set progress = progress
where id = :id::uuid and token = :token::uuid
returning
    ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint as timeline, claims,
    set_config(
        'synchronous_commit',
        case
            when current_setting('synchronous_commit') in ('off', 'local') then 'on'
            else current_setting('synchronous_commit')
        end,
        true
    );
