-- Set the search_path, and return what it was.
-- Both functions are named in full: this is said while something may stand in front of them.
select
    pg_catalog.current_setting('search_path'),
    pg_catalog.set_config('search_path', :path, :local::boolean);
