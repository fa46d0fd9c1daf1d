"""Models served over HTTP, by the Open Inference Protocol.

:class:`~cntk.serving.application.Application` is an ASGI application; ``cntk serve`` runs it.  What it needs comes with
``pip install 'opencntk[serve]'``, and none of it is imported before.
"""
