"""A user's data on its way in and out.

Belongs here: values, views, feeding and the way back.
It must not know programs.
"""
