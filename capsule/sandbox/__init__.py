"""The sandbox: ``launcher`` starts a ``plan`` in it, ``lock`` closes it from inside, ``selftest`` proves it.

Nothing is imported here, so that a guest loads ``capsule.sandbox.lock`` alone.
"""
