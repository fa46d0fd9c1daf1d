"""Values: a user's data on its way in and out."""
