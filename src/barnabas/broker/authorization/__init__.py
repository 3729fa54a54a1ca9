"""Who may do what: the table of rights (table.py), and how it is enforced (guard.py).

A broker without `authorizer.class.name` uses none of this, except that its authorizer allows everything."""
