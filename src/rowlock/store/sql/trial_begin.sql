-- Settle that no statement of this transaction takes long, and that its end waits for no disk and no standby: all it does is
-- undone before that.
select
    set_config('statement_timeout', :timeout, true), set_config('lock_timeout', '500ms', true),
    set_config('synchronous_commit', 'off', true);
