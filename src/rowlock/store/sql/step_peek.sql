-- What some steps of a workflow were given, and what they made of it; what is over :most bytes is only named, and left out.
select
    step_key,
    case when octet_length(input::text) <= :most::integer then input::text end as input,
    case when octet_length(result::text) <= :most::integer then result::text end as result,
    case when octet_length(error::text) <= :most::integer then error::text end as error,
    array_remove(
        array[
            case when octet_length(input::text) > :most::integer then 'input' end,
            case when octet_length(result::text) > :most::integer then 'result' end,
            case when octet_length(error::text) > :most::integer then 'error' end
        ],
        null
    ) as left_out
from rowlock.workflow_steps
where workflow_id = :id::uuid and step_key = any(:keys::text[]);
