CREATE TABLE public.people (
	person_id      int PRIMARY KEY,
	age            smallint NOT NULL,
	workclass      text,
	education      text NOT NULL,
	education_num  smallint NOT NULL,
	marital_status text NOT NULL,
	occupation     text,
	relationship   text NOT NULL,
	race           text NOT NULL,
	sex            text NOT NULL,
	capital_gain   int NOT NULL,
	capital_loss   int NOT NULL,
	hours_per_week smallint NOT NULL,
	native_country text,
	income         text NOT NULL
);
CREATE TABLE public.visits (
	visit_id  int PRIMARY KEY,
	person_id int NOT NULL,
	day       date NOT NULL,
	region    text NOT NULL,
	amount    numeric(8, 2) NOT NULL
);
CREATE TABLE public.regions (name text PRIMARY KEY);
GRANT SELECT ON public.people, public.visits, public.regions TO noisegate_reader;
GRANT USAGE ON SCHEMA public TO noisegate_prepare;
GRANT SELECT ON public.visits TO noisegate_prepare;
