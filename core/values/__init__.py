"""A user's data on its way in and out.

Values, views, feeding and the way back go in.
It must not know programs.
"""
