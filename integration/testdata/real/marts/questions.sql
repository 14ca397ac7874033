-- [monthly-revenue]
with orders as (

    select * from public.orders

),

completed as (

    select
        id as order_id,
        date_trunc('month', ordered_at) as order_month,
        order_total / 100.0 as order_total
    from orders
    where status <> 'returned'

)

select
    order_month,
    count(order_id) as orders,
    sum(order_total) as revenue
from completed
group by 1
order by 1

-- [store-product-mix]
with items as (

    select * from public.items

),

products as (

    select
        sku as product_id,
        type as product_type,
        price / 100.0 as product_price
    from public.products

),

orders as (

    select id as order_id, store_id from public.orders

),

stores as (

    select id as store_id, name as store_name from public.stores

),

joined as (

    select
        stores.store_name,
        products.product_type,
        products.product_price
    from items
    left join orders on items.order_id = orders.order_id
    left join products on items.sku = products.product_id
    left join stores on orders.store_id = stores.store_id

)

select
    store_name,
    product_type,
    count(*) as items_sold,
    sum(product_price) as revenue
from joined
group by store_name, product_type

-- [customer-types]
with customer_orders as (

    select
        customer_id,
        min(ordered_at) as first_ordered_at,
        max(ordered_at) as last_ordered_at,
        count(distinct id) as count_lifetime_orders,
        sum(order_total) / 100.0 as lifetime_spend
    from public.orders
    group by customer_id

),

customers as (

    select
        customers.id as customer_id,
        coalesce(customer_orders.count_lifetime_orders, 0) as count_lifetime_orders,
        coalesce(customer_orders.lifetime_spend, 0) as lifetime_spend,
        case
            when customer_orders.count_lifetime_orders > 1 then 'returning'
            else 'new'
        end as customer_type
    from public.customers
    left join customer_orders on customers.id = customer_orders.customer_id

)

select
    customer_type,
    count(*) as customers,
    avg(count_lifetime_orders) as average_orders,
    avg(lifetime_spend) as average_lifetime_spend
from customers
group by customer_type

-- [payments-by-method]
with order_payments as (

    select
        order_id,
        sum(case when payment_method = 'credit_card' then amount else 0 end) as credit_card_amount,
        sum(case when payment_method = 'coupon' then amount else 0 end) as coupon_amount,
        sum(case when payment_method = 'bank_transfer' then amount else 0 end) as bank_transfer_amount,
        sum(case when payment_method = 'gift_card' then amount else 0 end) as gift_card_amount,
        sum(amount) as total_amount
    from public.payments
    group by order_id

),

final as (

    select
        orders.id as order_id,
        orders.status,
        order_payments.credit_card_amount,
        order_payments.coupon_amount,
        order_payments.bank_transfer_amount,
        order_payments.gift_card_amount,
        order_payments.total_amount as amount
    from public.orders
    left join order_payments on orders.id = order_payments.order_id

)

select
    status,
    count(*) as orders,
    sum(credit_card_amount) as credit_card_amount,
    sum(coupon_amount) as coupon_amount,
    sum(bank_transfer_amount) as bank_transfer_amount,
    sum(gift_card_amount) as gift_card_amount,
    sum(amount) as amount
from final
group by status

-- [orders-per-customer]
with per_customer as (

    select customer_id, count(*) as number_of_orders
    from public.orders
    group by 1

)

select number_of_orders, count(*) as customers
from per_customer
group by 1
order by 1

-- [cohort-retention]
with first_orders as (

    select customer_id, date_trunc('month', min(ordered_at)) as cohort_month
    from public.orders
    group by 1

),

activity as (

    select distinct
        orders.customer_id,
        date_trunc('month', orders.ordered_at) as active_month
    from public.orders

)

select
    first_orders.cohort_month,
    activity.active_month,
    count(distinct activity.customer_id) as customers
from activity
join first_orders on activity.customer_id = first_orders.customer_id
group by 1, 2
order by 1, 2

-- [average-order-value]
select
    date_trunc('week', ordered_at)::date as order_week,
    sum(order_total)::numeric / nullif(count(*), 0) / 100 as average_order_value
from public.orders
where status in ('completed', 'shipped')
group by 1
order by 1

-- [product-share]
with product_sales as (

    select
        products.name as product_name,
        sum(products.price) as revenue
    from public.items
    inner join public.products on items.sku = products.sku
    group by 1

)

select
    product_name,
    revenue,
    revenue / sum(revenue) over () as share_of_revenue
from product_sales
order by revenue desc

-- [first-and-repeat-orders]
with numbered as (

    select
        *,
        row_number() over (
            partition by customer_id
            order by ordered_at asc
        ) as customer_order_number
    from public.orders

)

select
    date_trunc('quarter', ordered_at) as order_quarter,
    sum(case when customer_order_number = 1 then 1 else 0 end) as first_orders,
    sum(case when customer_order_number > 1 then 1 else 0 end) as repeat_orders
from numbered
group by 1
order by 1

-- [daily-active-customers]
with days as (

    select day::date as date_day
    from generate_series('2023-01-01'::date, '2023-01-31'::date, interval '1 day') as day

),

daily as (

    select ordered_at::date as date_day, count(distinct customer_id) as customers
    from public.orders
    group by 1

)

select
    days.date_day,
    coalesce(daily.customers, 0) as customers
from days
left join daily on days.date_day = daily.date_day
order by 1
