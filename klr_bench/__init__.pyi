"""The public names, for `klr_bench/__init__.py`, which imports each when it is first used, and for type checkers."""

from .datasets.stream import stream as stream
from .estimators.batch.dual import DualCDKLR as DualCDKLR
from .estimators.batch.ivm import ImportVectorMachine as ImportVectorMachine
from .estimators.batch.nystroem import NystroemKLR as NystroemKLR
from .estimators.batch.primal import PrimalCDKLR as PrimalCDKLR
from .estimators.budget.bogd import BOGD as BOGD
from .estimators.budget.bogd import BOGDPlusPlus as BOGDPlusPlus
from .estimators.budget.bsgd import BSGD as BSGD
from .estimators.budget.forgetron import Forgetron as Forgetron
from .estimators.budget.norma import NORMA as NORMA
from .estimators.budget.oskl import BudgetOSKL as BudgetOSKL
from .estimators.budget.projectron import Projectron as Projectron
from .estimators.budget.projectron import ProjectronPlusPlus as ProjectronPlusPlus
from .estimators.budget.rbp import RandomizedBudgetPerceptron as RandomizedBudgetPerceptron
from .estimators.features.fogd import FOGD as FOGD
from .estimators.features.nogd import NOGD as NOGD
from .estimators.l1.estimator import L1KLR as L1KLR
from .estimators.l1.path import l1_path as l1_path
from .estimators.l1.path import lambda_max as lambda_max
from .estimators.linear.arow import AROW as AROW
from .estimators.linear.arow import NAROW as NAROW
from .estimators.linear.bcw import BatchConfidenceWeighted as BatchConfidenceWeighted
from .estimators.linear.cw import ConfidenceWeighted as ConfidenceWeighted
from .estimators.linear.cw import SoftConfidenceWeighted as SoftConfidenceWeighted
from .estimators.linear.pa import PassiveAggressive as PassiveAggressive
from .estimators.linear.sbcw import FeatureGeneratingMachine as FeatureGeneratingMachine
from .estimators.linear.sbcw import SparseBatchConfidenceWeighted as SparseBatchConfidenceWeighted
from .estimators.linear.sofs import SOFS as SOFS
from .estimators.linear.sop import SecondOrderPerceptron as SecondOrderPerceptron
from .estimators.linear.spardca import SparDCA as SparDCA
from .estimators.online.alma import ALMA as ALMA
from .estimators.online.auxiliary import AuxiliaryKLR as AuxiliaryKLR
from .estimators.online.duol import DUOL as DUOL
from .estimators.online.many import fit_many as fit_many
from .estimators.online.margin import MarginKLR as MarginKLR
from .estimators.online.nc import NonConservativeKLR as NonConservativeKLR
from .estimators.online.ogd import KernelOGD as KernelOGD
from .estimators.online.oskl import OSKL as OSKL
from .estimators.online.pegasos import KernelPegasos as KernelPegasos
from .estimators.online.perceptron import KernelPerceptron as KernelPerceptron
from .estimators.peers.approximate import ApproximateKernelLR as ApproximateKernelLR
from .estimators.peers.l1 import L1Peer as L1Peer
from .estimators.prototype.estimator import PrototypeKLR as PrototypeKLR
from .report.load import load_results as load_results

__version__: str
