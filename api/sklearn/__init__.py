"""Networks as estimators of scikit-learn, which this module imports.

>>> from cntk.sklearn import Classifier
>>> X = np.random.default_rng(1).normal(size=(200, 2))
>>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
>>> Classifier(hidden=(32,), learning_rate=0.05, max_epochs=50, random_state=1).fit(X, y).score(X, y) > 0.9
True
"""

from __future__ import annotations

try:
    import sklearn as sklearn
except ImportError:
    raise ImportError("cntk.sklearn has estimators of scikit-learn; install it with: pip install 'opencntk[sklearn]'") from None

from cntk.sklearn.classifier import Classifier
from cntk.sklearn.regressor import Regressor

__all__ = ["Classifier", "Regressor"]
