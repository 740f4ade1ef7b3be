-- Remove the events that were written while their part was missing, once they are as old as other events get.
select rowlock.clear_spare_events();
