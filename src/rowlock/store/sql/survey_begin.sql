-- Settle how this transaction looks around: nothing is written, no statement takes long, and each is planned for the tables
-- as they are now, for it is seldom run. Where somebody has locked a table, it is not waited for long.
select
    set_config('transaction_read_only', 'on', true), set_config('statement_timeout', :timeout, true),
    set_config('lock_timeout', '500ms', true), set_config('plan_cache_mode', 'force_custom_plan', true);
