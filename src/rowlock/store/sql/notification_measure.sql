-- How full the queue of notifications is, as a share: one for all databases of the server.
select pg_notification_queue_usage();
