(* Lemmas 4.1 and 4.2 of Jelassi, Sander and Li (NeurIPS 2022) and the reduced equations, for all
   numbers of sets L, places of a set C and dimensions d.

   Patches are pairs (set, place), D = L C of them. A sample has a label y, a signal set l and a
   feature of each patch, which gives a number delta and a noise vector xi. Patch j is
   y w + xi_j in the signal set and delta_j w + xi_j elsewhere. The law is finite: features are
   independent with arbitrary weights. Gradient descent trains the attention matrix A, except for
   its diagonal, and the value vector v on the population risk of the softmax model.

   lemma_4_1: A keeps three values; activation and loss are arbitrary functions.
   reduction: if both are differentiable and the noise is symmetric and orthogonal to w, then
   v = alpha w, and alpha, gamma, rho follow the reduced equations with 1/(D(C-1)) and 1/(D(D-C)). *)

Require Import Reals Lra FunctionalExtensionality.
From Coquelicot Require Import Coquelicot.
From mathcomp Require Import all_ssreflect fingroup perm.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

(* Sums and products of real numbers as operators of the library of finite iterations. *)
Lemma add_assoc : associative Rplus. Proof. by move=> *; rewrite Rplus_assoc. Qed.
Lemma mul_assoc : associative Rmult. Proof. by move=> *; rewrite Rmult_assoc. Qed.
Canonical add_law := Monoid.Law add_assoc Rplus_0_l Rplus_0_r.
Canonical add_comlaw := Monoid.ComLaw Rplus_comm.
Canonical mul_law := Monoid.Law mul_assoc Rmult_1_l Rmult_1_r.
Canonical mul_comlaw := Monoid.ComLaw Rmult_comm.

Local Open Scope R_scope.
Notation "\total_ ( i : T ) E" := (\big[Rplus/0]_(i : T) E) (at level 41, E at level 41, i at level 50).

Section Model.

Variables L C : nat.                           (* number of sets, places of a set *)
Definition patch : finType := prod_finType (ordinal_finType L) (ordinal_finType C).
Definition matrix := patch -> patch -> R.

Variables label feature : finType.             (* values of the label and of a feature *)
Variable sign : label -> R.                    (* the label as a number *)
Variable number : feature -> R.                (* delta of a feature *)
Variable dim : nat.                             (* dimension of the patches *)
Definition vector := 'I_dim -> R.
Variable noise : feature -> vector.            (* xi of a feature *)
Variable w : vector.                           (* the direction w* *)
Variable label_weight : label -> R.            (* their probabilities, or any other weights *)
Variable feature_weight : feature -> R.
Variables activation loss : R -> R.            (* arbitrary functions *)
Variable tau : R.                              (* temperature *)

Definition attention (A : matrix) : matrix := fun i j =>
  exp (A i j / tau) / \total_(k : patch) exp (A i k / tau).

Definition score (A : matrix) (r : patch -> R) (i : patch) :=
  \total_(j : patch) (attention A i j * r j).

Definition output (A : matrix) (r : patch -> R) := \total_(i : patch) activation (score A r i).

Definition coefficient (y : label) (l : 'I_L) (x : {ffun patch -> feature}) (j : patch) :=
  if j.1 == l then sign y else number (x j).

(* The inner product of a vector and patch j. *)
Definition product (v : vector) (y : label) (l : 'I_L) (x : {ffun patch -> feature}) (j : patch) :=
  \total_(k : 'I_dim) (v k * (coefficient y l x j * w k + noise (x j) k)).

Definition weight (y : label) (x : {ffun patch -> feature}) :=
  label_weight y * \big[Rmult/1]_(j : patch) feature_weight (x j).

Definition sample_risk (A : matrix) (v : vector) (y : label) (l : 'I_L) (x : {ffun patch -> feature}) :=
  weight y x * loss (sign y * output A (product v y l x)).

Definition risk (A : matrix) (v : vector) :=
  \total_(y : label) \total_(l : 'I_L) \total_(x : {ffun patch -> feature}) sample_risk A v y l x.

(* The matrix A with h added to the entry (i, j), and the derivative of the risk in this entry. *)
Definition shifted (A : matrix) (i j : patch) (h : R) : matrix := fun k m =>
  A k m + (if (k == i) && (m == j) then h else 0).

Definition gradient (A : matrix) (v : vector) : matrix := fun i j =>
  Derive (fun h => risk (shifted A i j h) v) 0.

(* One step of gradient descent on the entries off the diagonal. *)
Definition step (eta : R) (A : matrix) (v : vector) : matrix := fun i j =>
  if i == j then A i j else A i j - eta * gradient A v i j.

(* Descent with any learning rates and any value vectors, one for each step. *)
Fixpoint descent (eta : nat -> R) (v : nat -> vector) (A : matrix) (t : nat) : matrix :=
  match t with
  | 0%N => A
  | S s => step (eta s) (descent eta v A s) (v s)
  end.

Definition three_valued (A : matrix) := exists beta gamma rho, forall i j,
  A i j = if i == j then beta else if i.1 == j.1 then gamma else rho.

(* An exchange of patches that is its own inverse and maps sets to sets. *)
Record exchange := Exchange {
  move : patch -> patch;
  move_set : 'I_L -> 'I_L;
  moveK : involutive move;
  move_setK : involutive move_set;
  move_fst : forall p, (move p).1 = move_set p.1
}.

Definition invariant (e : exchange) (A : matrix) := forall i j, A (move e i) (move e j) = A i j.

Lemma move_inj e : injective (move e). Proof. exact: inv_inj (@moveK e). Qed.

Lemma sum_move e (f : patch -> R) : \total_(i : patch) f (move e i) = \total_(i : patch) f i.
Proof. by rewrite [RHS](reindex_inj (@move_inj e)). Qed.

Lemma attention_move e A i j :
  attention A (move e i) (move e j) = attention (fun k m => A (move e k) (move e m)) i j.
Proof. by rewrite /attention -(sum_move e (fun k => exp (A (move e i) k / tau))). Qed.

Lemma attention_ext A B : A =2 B -> attention A =2 attention B.
Proof. by move=> eqAB i j; rewrite /attention eqAB; under eq_bigr do rewrite eqAB. Qed.

Lemma score_ext A B r q : A =2 B -> r =1 q -> score A r =1 score B q.
Proof. by move=> eqAB eqr i; apply: eq_bigr => j _; rewrite (attention_ext eqAB) eqr. Qed.

Lemma output_ext A B r q : A =2 B -> r =1 q -> output A r = output B q.
Proof. by move=> eqAB eqr; apply: eq_bigr => i _; rewrite (score_ext eqAB eqr). Qed.

Lemma output_move e A r :
  output (fun k m => A (move e k) (move e m)) r = output A (fun j => r (move e j)).
Proof.
rewrite /output -[RHS](sum_move e); apply: eq_bigr => i _; congr activation.
rewrite /score -[RHS](sum_move e); apply: eq_bigr => j _.
by rewrite attention_move moveK.
Qed.

(* The features after an exchange. *)
Definition moved e (x : {ffun patch -> feature}) : {ffun patch -> feature} := [ffun j => x (move e j)].

Lemma movedK e : involutive (moved e).
Proof. by move=> x; apply/ffunP => j; rewrite !ffunE moveK. Qed.

Lemma product_move e v y l x j :
  product v y l x (move e j) = product v y (move_set e l) (moved e x) j.
Proof.
rewrite /product /coefficient ffunE move_fst -[l in LHS](move_setK e).
by rewrite (inj_eq (inv_inj (@move_setK e))).
Qed.

Lemma product_ext u v y l x : u =1 v -> product u y l x =1 product v y l x.
Proof. by move=> equv j; apply: eq_bigr => k _; rewrite equv. Qed.

Lemma risk_ext A B u v : A =2 B -> u =1 v -> risk A u = risk B v.
Proof.
move=> eqAB equv; do 3![apply: eq_bigr => ? _]; rewrite /sample_risk.
by rewrite (output_ext eqAB (product_ext _ _ _ equv)).
Qed.

Lemma risk_move e A v : risk (fun k m => A (move e k) (move e m)) v = risk A v.
Proof.
apply: eq_bigr => y _; rewrite [RHS](reindex_inj (inv_inj (@move_setK e))).
apply: eq_bigr => l _; rewrite [RHS](reindex_inj (inv_inj (@movedK e))).
apply: eq_bigr => x _; rewrite /sample_risk output_move.
rewrite (output_ext (fun i j => erefl) (product_move e v y l x)); congr (_ * _ * _).
by rewrite [LHS](reindex_inj (@move_inj e)); apply: eq_bigr => j _; rewrite ffunE.
Qed.

(* Equal entries have equal derivatives: the risk as a function of either is the same function. *)
Lemma gradient_move e A v : invariant e A -> invariant e (gradient A v).
Proof.
move=> invA i j; apply: Derive_ext => h; rewrite -[LHS](risk_move e); apply: risk_ext => // k m.
by rewrite /shifted invA !(inj_eq (@move_inj e)).
Qed.

Lemma descent_invariant e eta v A t : invariant e A -> invariant e (descent eta v A t).
Proof.
move=> invA; elim: t => [|t IH] //= i j.
by rewrite /step (inj_eq (@move_inj e)) IH gradient_move.
Qed.

Lemma three_valued_invariant e A : three_valued A -> invariant e A.
Proof.
case=> beta [gamma [rho valA]] i j.
by rewrite !valA (inj_eq (@move_inj e)) !move_fst (inj_eq (inv_inj (@move_setK e))).
Qed.

(* Two exchanges suffice: of two sets, and of two places of one set. *)
Lemma swap_setsK (k l : 'I_L) : involutive (fun p : patch => (tperm k l p.1, p.2)).
Proof. by case=> a b /=; rewrite tpermK. Qed.
Definition swap_sets k l : exchange :=
  @Exchange (fun p => (tperm k l p.1, p.2)) (tperm k l) (@swap_setsK k l) (tpermK k l) (fun=> erefl).

Lemma swap_placesK (l : 'I_L) (c d : 'I_C) :
  involutive (fun p : patch => (p.1, if p.1 == l then tperm c d p.2 else p.2)).
Proof. by case=> a b /=; case: (a == l); rewrite ?tpermK. Qed.
Definition swap_places l c d : exchange :=
  @Exchange (fun p => (p.1, if p.1 == l then tperm c d p.2 else p.2)) id (@swap_placesK l c d)
    (fun=> erefl) (fun=> erefl).

Section Invariant.
Variable A : matrix.
Hypothesis invA : forall e, invariant e A.

Lemma first_moves i j k : exists m,
  [/\ A i j = A k m, (i == j) = (k == m) & (i.1 == j.1) = (k.1 == m.1)].
Proof.
pose e := swap_sets i.1 k.1; pose f := swap_places k.1 i.2 k.2.
have fe : move f (move e i) = k.
  by rewrite /= tpermL eqxx tpermL -surjective_pairing.
exists (move f (move e j)); rewrite -fe; split.
- by rewrite !invA.
- by rewrite !(inj_eq (@move_inj _)).
- by rewrite !move_fst !(inj_eq (inv_inj (@move_setK _))).
Qed.

Lemma second_moves_inside (k m n : patch) :
  k != m -> k != n -> k.1 = m.1 -> k.1 = n.1 -> A k m = A k n.
Proof.
case: k m n => [a b] [a' c] [a'' d] /= km kn eq_m eq_n; subst a' a''.
rewrite -(invA (swap_places a c d) (a, b) (a, c)) /= eqxx tpermL tpermD //.
- by apply: contra km => /eqP->.
- by apply: contra kn => /eqP->.
Qed.

Lemma second_moves_outside (k m n : patch) : k.1 != m.1 -> k.1 != n.1 -> A k m = A k n.
Proof.
case: k m n => [a b] [a' c] [a'' d] /= km kn.
rewrite -(invA (swap_sets a' a'') (a, b) (a', c)) /= tpermL tpermD 1?eq_sym //.
rewrite -(invA (swap_places a'' c d) (a, b) (a'', c)) /= eqxx tpermL.
by rewrite (negbTE kn).
Qed.

Lemma equal_of_same_type (i j k m : patch) :
  (i == j) = (k == m) -> (i.1 == j.1) = (k.1 == m.1) -> A i j = A k m.
Proof.
move=> same1 same2; have [n [-> eq1 eq2]] := first_moves i j k.
rewrite eq1 in same1; rewrite eq2 in same2.
have [kn|kn] := boolP (k == n); first by move: same1; rewrite kn => /esym/eqP <-; rewrite (eqP kn).
have km : k != m by rewrite -same1.
have [in_n|out_n] := boolP (k.1 == n.1).
  by apply: second_moves_inside => //; apply/eqP; rewrite -?same2.
by apply: second_moves_outside => //; rewrite -same2.
Qed.

Lemma invariant_three_valued : three_valued A.
Proof.
pose entry (P : pred (patch * patch)) := if [pick p | P p] is Some p then A p.1 p.2 else 0.
exists (entry (fun p => p.1 == p.2)), (entry (fun p => (p.1 != p.2) && (p.1.1 == p.2.1))),
  (entry (fun p => p.1.1 != p.2.1)) => i j; rewrite /entry.
case: eqP => [ij|/eqP ij]; last case: ifP => in_set.
- case: pickP => [[k m] /= km|/(_ (i, j))]; last by rewrite /= ij eqxx.
  by apply: equal_of_same_type; rewrite ?ij ?(eqP km) !eqxx.
- case: pickP => [[k m] /= /andP[km in_km]|/(_ (i, j))]; last by rewrite /= ij in_set.
  by apply: equal_of_same_type; rewrite ?(negbTE ij) ?(negbTE km) ?in_set ?in_km.
- case: pickP => [[k m] /= out_km|/(_ (i, j))]; last by rewrite /= in_set.
  have km : (k == m) = false by apply: contraNF out_km => /eqP->.
  by apply: equal_of_same_type; rewrite ?(negbTE ij) ?km ?in_set ?(negbTE out_km).
Qed.

End Invariant.

Theorem lemma_4_1 eta v A : three_valued A -> forall t, three_valued (descent eta v A t).
Proof.
by move=> valA t; apply: invariant_three_valued => e; apply/descent_invariant/three_valued_invariant.
Qed.


(* Derivatives along a line of matrices and vectors, for differentiable activation and loss. *)

Lemma total_lin (T : finType) (f g : T -> R) c :
  \total_(i : T) (f i + c * g i) = \total_(i : T) f i + c * \total_(i : T) g i.
Proof.
rewrite (big_morph (fun x => c * x) (Rmult_plus_distr_l c) (Rmult_0_r c)).
by rewrite -big_split.
Qed.

Lemma mul_opp a b : a * - b = -1 * (a * b). Proof. by ring. Qed.

Lemma total_scale (T : finType) (f : T -> R) c : \total_(i : T) (c * f i) = c * \total_(i : T) f i.
Proof. by rewrite (big_morph (fun x => c * x) (Rmult_plus_distr_l c) (Rmult_0_r c)). Qed.

Lemma is_derive_total (T : finType) (f : T -> R -> R) (df : T -> R) x :
  (forall i, is_derive (f i) x (df i)) ->
  is_derive (fun h => \total_(i : T) f i h) x (\total_(i : T) df i).
Proof.
move=> der; elim: (index_enum T) => [|i r IH].
  by rewrite big_nil; apply: (is_derive_ext (fun=> 0)) => [h|]; [rewrite big_nil | exact: is_derive_const].
rewrite big_cons; apply: (is_derive_ext (fun h => f i h + \big[Rplus/0]_(j <- r) f j h)).
  by move=> h; rewrite big_cons.
exact: is_derive_plus.
Qed.

Lemma total_positive (f : patch -> R) (i : patch) : (forall j, 0 < f j) -> 0 < \total_(j : patch) f j.
Proof.
move=> pos; rewrite (bigD1 i) //=; apply: Rplus_lt_le_0_compat => //.
by elim/big_ind: _ => [|a b|j _]; [exact: Rle_refl | exact: Rplus_le_le_0_compat | exact/Rlt_le].
Qed.

Variables activation' loss' : R -> R.
Hypothesis activation_derivative : forall x, is_derive activation x (activation' x).
Hypothesis loss_derivative : forall x, is_derive loss x (loss' x).

Section Slope.

Definition on_line (A H : matrix) (h : R) : matrix := fun i j => A i j + h * H i j.
Definition vector_on_line (v u : vector) (h : R) : vector := fun k => v k + h * u k.

(* The derivatives of attention, scores, output and risk along the direction (H, u). *)
Definition attention' (A H : matrix) : matrix := fun i j =>
  attention A i j * ((H i j - \total_(k : patch) (attention A i k * H i k)) / tau).
Definition score' (A H : matrix) (r r' : patch -> R) (i : patch) :=
  \total_(j : patch) (attention' A H i j * r j + attention A i j * r' j).
Definition output' (A H : matrix) (r r' : patch -> R) :=
  \total_(i : patch) (activation' (score A r i) * score' A H r r' i).
Definition sample_slope (A : matrix) (v : vector) (H : matrix) (u : vector) y l x :=
  weight y x * (loss' (sign y * output A (product v y l x))
    * (sign y * output' A H (product v y l x) (product u y l x))).
Definition slope (A : matrix) (v : vector) (H : matrix) (u : vector) :=
  \total_(y : label) \total_(l : 'I_L) \total_(x : {ffun patch -> feature}) sample_slope A v H u y l x.

Variables (A H : matrix) (v u : vector) (h : R).
Let B := on_line A H h.
Let z := vector_on_line v u h.

Lemma is_derive_attention i j :
  is_derive (fun t => attention (on_line A H t) i j) h (attention' B H i j).
Proof.
have derive_exp k : is_derive (fun t => exp (on_line A H t i k / tau)) h (exp (B i k / tau) * (H i k / tau)).
  by rewrite /B /on_line; auto_derive => //; rewrite /Rdiv; ring.
have pos : 0 < \total_(k : patch) exp (B i k / tau).
  by apply: (total_positive i) => k; exact: exp_pos.
have := is_derive_div _ _ _ _ _ (derive_exp j) (is_derive_total derive_exp) (Rgt_not_eq _ _ pos).
rewrite /attention' /attention => der; apply: (is_derive_ext _ _ _ _ (fun t => erefl)).
have mean : \total_(k : patch) (exp (B i k / tau) / (\total_(m : patch) exp (B i m / tau)) * H i k)
    = / (\total_(m : patch) exp (B i m / tau)) * (\total_(k : patch) (exp (B i k / tau) * H i k)).
  by rewrite -total_scale; apply: eq_bigr => k _; rewrite /Rdiv; ring.
have divided : \total_(k : patch) (exp (B i k / tau) * (H i k / tau))
    = / tau * \total_(k : patch) (exp (B i k / tau) * H i k).
  by rewrite -total_scale; apply: eq_bigr => k _; rewrite /Rdiv; ring.
move: der; rewrite mean divided; set Z := \total_(m : patch) _ in pos *; set M := \total_(m : patch) _.
set e := exp _ => der; suff -> : e / Z * ((H i j - / Z * M) / tau)
   = (e * (H i j / tau) * Z - e * (/ tau * M)) / Z ^ 2 by [].
rewrite /Rdiv; move: (Rgt_not_eq _ _ pos) => nonzero; generalize (/ tau) => c; field.
exact: nonzero.
Qed.

Lemma is_derive_product y l x j :
  is_derive (fun t => product (vector_on_line v u t) y l x j) h (product u y l x j).
Proof. apply: is_derive_total => k; rewrite /vector_on_line; auto_derive => //; by rewrite Rmult_1_l. Qed.

Lemma is_derive_output y l x :
  is_derive (fun t => output (on_line A H t) (product (vector_on_line v u t) y l x)) h
    (output' B H (product z y l x) (product u y l x)).
Proof.
apply: is_derive_total => i.
have der : is_derive (fun t => score (on_line A H t) (product (vector_on_line v u t) y l x) i) h
    (score' B H (product z y l x) (product u y l x) i).
  apply: is_derive_total => j.
  exact: is_derive_mult (is_derive_attention i j) (is_derive_product y l x j) Rmult_comm.
by rewrite Rmult_comm; exact: is_derive_comp (activation_derivative _) der.
Qed.

Lemma is_derive_risk :
  is_derive (fun t => risk (on_line A H t) (vector_on_line v u t)) h (slope B z H u).
Proof.
do 3![apply: is_derive_total => ?]; apply: is_derive_scal.
rewrite Rmult_comm; apply: is_derive_comp (loss_derivative _) _.
exact: is_derive_scal (is_derive_output _ _ _).
Qed.

End Slope.

(* The slope is linear in the direction, so it is a sum over the entries of the matrix. *)
Section Linear.

Variables (A : matrix) (v : vector).

Lemma attention'_lin H K c i j :
  attention' A (on_line H K c) i j = attention' A H i j + c * attention' A K i j.
Proof.
rewrite /attention' /on_line.
have -> : \total_(k : patch) (attention A i k * (H i k + c * K i k)) =
    \total_(k : patch) (attention A i k * H i k) + c * \total_(k : patch) (attention A i k * K i k).
  by rewrite -total_lin; apply: eq_bigr => k _; ring.
by rewrite /Rdiv; ring.
Qed.

Lemma product_lin u z c y l x j :
  product (vector_on_line u z c) y l x j = product u y l x j + c * product z y l x j.
Proof. by rewrite -total_lin; apply: eq_bigr => k _; rewrite /vector_on_line Rmult_plus_distr_r Rmult_assoc. Qed.

Lemma slope_lin H K u z c :
  slope A v (on_line H K c) (vector_on_line u z c) = slope A v H u + c * slope A v K z.
Proof.
rewrite -!total_lin; apply: eq_bigr => y _; rewrite -total_lin; apply: eq_bigr => l _.
rewrite -total_lin; apply: eq_bigr => x _; rewrite /sample_slope.
have -> : output' A (on_line H K c) (product v y l x) (product (vector_on_line u z c) y l x) =
    output' A H (product v y l x) (product u y l x) + c * output' A K (product v y l x) (product z y l x).
  rewrite -total_lin; apply: eq_bigr => i _.
  have -> : score' A (on_line H K c) (product v y l x) (product (vector_on_line u z c) y l x) i =
      score' A H (product v y l x) (product u y l x) i + c * score' A K (product v y l x) (product z y l x) i.
    by rewrite -total_lin; apply: eq_bigr => j _; rewrite attention'_lin product_lin; ring.
  by ring.
by ring.
Qed.

Definition no_matrix : matrix := fun _ _ => 0.
Definition no_vector : vector := fun=> 0.

Lemma slope_add H K c : slope A v (on_line H K c) no_vector = slope A v H no_vector + c * slope A v K no_vector.
Proof.
rewrite -slope_lin; congr slope; apply: functional_extensionality => k.
by rewrite /vector_on_line /no_vector; ring.
Qed.

Lemma slope_zero : slope A v no_matrix no_vector = 0.
Proof.
have : slope A v (on_line no_matrix no_matrix 1) no_vector = slope A v no_matrix no_vector.
  congr slope; do 2!apply: functional_extensionality => ?; by rewrite /on_line /no_matrix; ring.
rewrite slope_add Rmult_1_l => twice.
by apply: (Rplus_eq_reg_l (slope A v no_matrix no_vector)); rewrite twice Rplus_0_r.
Qed.

Definition entry (p : patch * patch) : matrix := fun k m => if (k == p.1) && (m == p.2) then 1 else 0.

Lemma total_entries (H : matrix) k m : \total_(p : patch * patch) (H p.1 p.2 * entry p k m) = H k m.
Proof.
rewrite (bigD1 (k, m)) //= /entry /= !eqxx big1 /=; first by ring.
by case=> a b /=; rewrite xpair_eqE (eq_sym a) (eq_sym b) => /negbTE ->; ring.
Qed.

Lemma slope_entries H :
  slope A v H no_vector = \total_(p : patch * patch) (H p.1 p.2 * slope A v (entry p) no_vector).
Proof.
rewrite -[in LHS](_ : (fun k m => \total_(p : patch * patch) (H p.1 p.2 * entry p k m)) = H); last first.
  by apply: functional_extensionality => k; apply: functional_extensionality => m; exact: total_entries.
elim: (index_enum _) => [|p r IH].
  rewrite big_nil -[RHS]slope_zero; congr slope.
  by do 2!apply: functional_extensionality => ?; rewrite big_nil.
rewrite big_cons -IH Rplus_comm -slope_add; congr slope.
by do 2!apply: functional_extensionality => ?; rewrite big_cons /on_line Rplus_comm.
Qed.

Lemma on_line0 (B H : matrix) : on_line B H 0 = B.
Proof. by do 2!apply: functional_extensionality => ?; rewrite /on_line; ring. Qed.

Lemma vector_on_line0 (z u : vector) : vector_on_line z u 0 = z.
Proof. by apply: functional_extensionality => ?; rewrite /vector_on_line; ring. Qed.

Lemma gradient_slope i j : gradient A v i j = slope A v (entry (i, j)) no_vector.
Proof.
rewrite -{2}(on_line0 A (entry (i, j))) -{2}(vector_on_line0 v no_vector); apply: is_derive_unique.
apply: (is_derive_ext (fun h => risk (on_line A (entry (i, j)) h) (vector_on_line v no_vector h))).
  move=> h; apply: risk_ext => [k m|k]; rewrite /on_line /vector_on_line /shifted /entry /no_vector /=.
    by case: ifP => _; ring.
  by ring.
exact: is_derive_risk.
Qed.

End Linear.

(* The manifold, and the numbers of pairs of patches of either type. *)
Definition three (beta gamma rho : R) : matrix := fun i j =>
  if i == j then beta else if i.1 == j.1 then gamma else rho.

Lemma three_is_three_valued beta gamma rho : three_valued (three beta gamma rho).
Proof. by exists beta, gamma, rho. Qed.

Lemma total_const (T : finType) c : \total_(i : T) c = INR #|T| * c.
Proof.
rewrite big_const; elim: #|T| => [|n IH]; first by rewrite /=; ring.
by rewrite iterS IH S_INR; ring.
Qed.

Lemma total_indicator (T : finType) (i : T) : \total_(j : T) (if i == j then 1 else 0) = 1.
Proof.
rewrite (bigD1 i) //= eqxx big1; first by ring.
by move=> j; rewrite eq_sym => /negbTE ->.
Qed.

Definition D := INR (L * C).

Lemma total_set (i : patch) : \total_(j : patch) (if i.1 == j.1 then 1 else 0) = INR C.
Proof.
rewrite -(pair_bigA _ (fun a (_ : 'I_C) => if i.1 == a then 1 else 0)) /=.
under eq_bigr do rewrite total_const card_ord.
by rewrite total_scale total_indicator; ring.
Qed.

Lemma total_pairs (f : patch -> patch -> R) c :
  (forall i, \total_(j : patch) f i j = c) -> \total_(p : patch * patch) f p.1 p.2 = D * c.
Proof.
move=> sum_f; rewrite -(pair_bigA _ f) /=; under eq_bigr do rewrite sum_f.
by rewrite total_const card_prod !card_ord.
Qed.

Lemma pairs_same : \total_(p : patch * patch) three 0 1 0 p.1 p.2 = D * (INR C - 1).
Proof.
apply: total_pairs => i.
have -> : INR C - 1 = \total_(j : patch) (if i.1 == j.1 then 1 else 0)
    + -1 * \total_(j : patch) (if i == j then 1 else 0).
  by rewrite total_set total_indicator; ring.
rewrite -total_lin; apply: eq_bigr => j _; rewrite /three.
by case: eqP => [->|_]; rewrite ?eqxx; [|case: ifP => _]; ring.
Qed.

Lemma pairs_other : \total_(p : patch * patch) three 0 0 1 p.1 p.2 = D * (D - INR C).
Proof.
apply: total_pairs => i.
have -> : D - INR C = \total_(j : patch) 1 + -1 * \total_(j : patch) (if i.1 == j.1 then 1 else 0).
  by rewrite total_set total_const card_prod !card_ord -/D; ring.
rewrite -total_lin; apply: eq_bigr => j _; rewrite /three.
by case: eqP => [->|_]; rewrite ?eqxx; [|case: ifP => _]; ring.
Qed.

Section Reduction.

Hypothesis unit_w : \total_(k : 'I_dim) (w k * w k) = 1.
Hypothesis orthogonal : forall x, \total_(k : 'I_dim) (noise x k * w k) = 0.
Variable flip : feature -> feature.            (* changes the sign of the noise alone *)
Hypothesis flipK : involutive flip.
Hypothesis flip_number : forall x, number (flip x) = number x.
Hypothesis flip_noise : forall x k, noise (flip x) k = - noise x k.
Hypothesis flip_weight : forall x, feature_weight (flip x) = feature_weight x.

Definition along (a : R) : vector := fun k => a * w k.
Definition inner (u z : vector) := \total_(k : 'I_dim) (u k * z k).

Lemma product_inner u y l x j :
  product u y l x j = coefficient y l x j * inner u w + inner u (noise (x j)).
Proof.
rewrite Rplus_comm /inner -total_lin; apply: eq_bigr => k _.
by rewrite Rmult_plus_distr_l Rplus_comm -!Rmult_assoc [u k * coefficient _ _ _ _]Rmult_comm.
Qed.

Lemma product_along a y l x j : product (along a) y l x j = a * coefficient y l x j.
Proof.
rewrite product_inner /inner /along.
have -> : \total_(k : 'I_dim) (a * w k * w k) = a * 1.
  by rewrite -unit_w -total_scale; apply: eq_bigr => k _; rewrite Rmult_assoc.
have -> : \total_(k : 'I_dim) (a * w k * noise (x j) k) = a * 0.
  rewrite -[X in _ = _ * X](orthogonal (x j)) -total_scale; apply: eq_bigr => k _.
  by rewrite Rmult_assoc (Rmult_comm (w k)).
by ring.
Qed.

Definition flipped (x : {ffun patch -> feature}) : {ffun patch -> feature} := [ffun j => flip (x j)].

Lemma flippedK : involutive flipped.
Proof. by move=> x; apply/ffunP => j; rewrite !ffunE flipK. Qed.

Lemma coefficient_flipped y l x j : coefficient y l (flipped x) j = coefficient y l x j.
Proof. by rewrite /coefficient ffunE flip_number. Qed.

Lemma slope_orthogonal A a u : inner u w = 0 -> slope A (along a) no_matrix u = 0.
Proof.
move=> orth; suff odd : slope A (along a) no_matrix u = -1 * slope A (along a) no_matrix u.
  by move: odd; set s := slope _ _ _ _; lra.
rewrite {1}/slope -!total_scale; apply: eq_bigr => y _; rewrite -total_scale; apply: eq_bigr => l _.
rewrite -total_scale (reindex_inj (inv_inj flippedK)); apply: eq_bigr => x _.
have same_product : product (along a) y l (flipped x) = product (along a) y l x.
  by apply: functional_extensionality => j; rewrite !product_along coefficient_flipped.
have opposite j : product u y l (flipped x) j = - product u y l x j.
  rewrite !product_inner orth ffunE /inner.
  have -> : \total_(k : 'I_dim) (u k * noise (flip (x j)) k) = -1 * \total_(k : 'I_dim) (u k * noise (x j) k).
    by rewrite -total_scale; apply: eq_bigr => k _; rewrite flip_noise; exact: mul_opp.
  by ring.
have same_weight : weight y (flipped x) = weight y x.
  by rewrite /weight; congr (_ * _); apply: eq_bigr => j _; rewrite ffunE flip_weight.
have still i j : attention' A no_matrix i j = 0.
  rewrite /attention' /no_matrix /Rdiv big1 => [|k _]; by ring.
have odd_output : output' A no_matrix (product (along a) y l x) (product u y l (flipped x)) =
    - output' A no_matrix (product (along a) y l x) (product u y l x).
  rewrite [RHS](_ : _ = -1 * output' A no_matrix (product (along a) y l x) (product u y l x)); last by ring.
  rewrite -total_scale; apply: eq_bigr => i _.
  have -> : score' A no_matrix (product (along a) y l x) (product u y l (flipped x)) i =
      -1 * score' A no_matrix (product (along a) y l x) (product u y l x) i.
    by rewrite -total_scale; apply: eq_bigr => j _; rewrite still opposite; ring.
  by ring.
by rewrite /sample_slope same_product same_weight odd_output; ring.
Qed.

Lemma slope_along A a u : slope A (along a) no_matrix u = inner u w * slope A (along a) no_matrix w.
Proof.
pose rest := vector_on_line u w (- inner u w).
have orth : inner rest w = 0.
  rewrite /inner /rest /vector_on_line.
  under eq_bigr do rewrite Rmult_plus_distr_r Rmult_assoc.
  by rewrite total_lin unit_w -/(inner u w); ring.
have := slope_lin A (along a) no_matrix no_matrix u w (- inner u w).
rewrite (_ : on_line no_matrix no_matrix _ = no_matrix); last first.
  by do 2!apply: functional_extensionality => ?; rewrite /on_line /no_matrix; ring.
rewrite -/rest slope_orthogonal // => eq0.
by apply: (Rplus_eq_reg_r (- inner u w * slope A (along a) no_matrix w)); rewrite -eq0; ring.
Qed.

(* The gradient of the risk in the value vector. *)
Definition gradient_vector (A : matrix) (v : vector) : vector := fun k =>
  Derive (fun h => risk A (fun m => v m + (if m == k then h else 0))) 0.

Lemma gradient_vector_slope A v k :
  gradient_vector A v k = slope A v no_matrix (fun m => if m == k then 1 else 0).
Proof.
set u := fun m => _; rewrite -{2}(on_line0 A no_matrix) -{2}(vector_on_line0 v u); apply: is_derive_unique.
apply: (is_derive_ext (fun h => risk (on_line A no_matrix h) (vector_on_line v u h))).
  move=> h; apply: risk_ext => [i j|m]; rewrite /on_line /vector_on_line /no_matrix /u.
    by ring.
  by case: ifP => _; ring.
exact: is_derive_risk.
Qed.

Variable beta : R.

(* The reduced risk and its derivatives. *)
Definition ell (a g r : R) := risk (three beta g r) (along a).
Definition d_alpha a g r := Derive (fun t => ell t g r) a.
Definition d_gamma a g r := Derive (fun t => ell a t r) g.
Definition d_rho a g r := Derive (fun t => ell a g t) r.

Lemma d_alpha_slope a g r : is_derive (fun t => ell t g r) a (slope (three beta g r) (along a) no_matrix w).
Proof.
have line t : vector_on_line no_vector w t = along t.
  by apply: functional_extensionality => k; rewrite /vector_on_line /no_vector /along; ring.
have still t : on_line (three beta g r) no_matrix t = three beta g r.
  by do 2!apply: functional_extensionality => ?; rewrite /on_line /no_matrix; ring.
have := is_derive_risk (three beta g r) no_matrix no_vector w a; rewrite line still.
by apply: is_derive_ext => t; rewrite line still.
Qed.

Lemma d_matrix_slope a (B H : matrix) x :
  is_derive (fun t => risk (on_line B H t) (along a)) x (slope (on_line B H x) (along a) H no_vector).
Proof.
have still t : vector_on_line (along a) no_vector t = along a.
  by apply: functional_extensionality => k; rewrite /vector_on_line /no_vector; ring.
have := is_derive_risk B H (along a) no_vector x; rewrite still.
by apply: is_derive_ext => t; rewrite still.
Qed.

Lemma line_gamma r t : on_line (three beta 0 r) (three 0 1 0) t = three beta t r.
Proof.
do 2!apply: functional_extensionality => ?; rewrite /on_line /three.
by case: ifP => _; [|case: ifP => _]; ring.
Qed.

Lemma line_rho g t : on_line (three beta g 0) (three 0 0 1) t = three beta g t.
Proof.
do 2!apply: functional_extensionality => ?; rewrite /on_line /three.
by case: ifP => _; [|case: ifP => _]; ring.
Qed.

Lemma d_gamma_slope a g r :
  is_derive (fun t => ell a t r) g (slope (three beta g r) (along a) (three 0 1 0) no_vector).
Proof.
have := d_matrix_slope a (three beta 0 r) (three 0 1 0) g; rewrite line_gamma.
by apply: is_derive_ext => t; rewrite line_gamma.
Qed.

Lemma d_rho_slope a g r :
  is_derive (fun t => ell a g t) r (slope (three beta g r) (along a) (three 0 0 1) no_vector).
Proof.
have := d_matrix_slope a (three beta g 0) (three 0 0 1) r; rewrite line_rho.
by apply: is_derive_ext => t; rewrite line_rho.
Qed.

(* All pairs of one type have the same gradient, so that it is the slope over their number. *)
Lemma gradient_of_type a g r (H : matrix) N i j :
  H i j = 1 -> (forall k m, H k m = 1 \/ H k m = 0) ->
  (forall k m, H k m = 1 -> gradient (three beta g r) (along a) k m = gradient (three beta g r) (along a) i j) ->
  \total_(p : patch * patch) H p.1 p.2 = N ->
  gradient (three beta g r) (along a) i j = slope (three beta g r) (along a) H no_vector / N.
Proof.
move=> one cases same count.
have pos : 0 < N.
  rewrite -count (bigD1 (i, j)) //= one; apply: Rplus_lt_le_0_compat; first exact: Rlt_0_1.
  elim/big_ind: _ => [|x z|p _]; [exact: Rle_refl | exact: Rplus_le_le_0_compat |].
  by case: (cases p.1 p.2) => ->; [exact: Rle_0_1 | exact: Rle_refl].
have -> : slope (three beta g r) (along a) H no_vector = gradient (three beta g r) (along a) i j * N.
  rewrite slope_entries -count -total_scale; apply: eq_bigr => [[k m]] _ /=.
  case: (cases k m) => [Hkm|->]; last by ring.
  by rewrite -gradient_slope same // Hkm; ring.
by field; exact: Rgt_not_eq.
Qed.

Lemma gradient_equal a g r i j k m :
  (i == j) = (k == m) -> (i.1 == j.1) = (k.1 == m.1) ->
  gradient (three beta g r) (along a) i j = gradient (three beta g r) (along a) k m.
Proof.
apply: equal_of_same_type => e; apply: gradient_move.
exact/three_valued_invariant/three_is_three_valued.
Qed.

Lemma gradient_same a g r i j : i != j -> i.1 == j.1 ->
  gradient (three beta g r) (along a) i j = d_gamma a g r / (D * (INR C - 1)).
Proof.
move=> ij in_set; rewrite /d_gamma (is_derive_unique _ _ _ (d_gamma_slope a g r)).
apply: gradient_of_type pairs_same; rewrite /three; first by rewrite (negbTE ij) in_set.
  by move=> k m; case: ifP => _; [|case: ifP => _]; [right|left|right].
move=> k m; case: (boolP (k == m)) => [_ /esym /R1_neq_R0 //|km]; case: ifP => [in_km _|_ /esym /R1_neq_R0 //].
by apply: gradient_equal; rewrite ?(negbTE ij) ?(negbTE km) ?in_set ?in_km.
Qed.

Lemma gradient_other a g r i j : i.1 != j.1 ->
  gradient (three beta g r) (along a) i j = d_rho a g r / (D * (D - INR C)).
Proof.
move=> out; have ij : (i == j) = false by apply: contraNF out => /eqP->.
rewrite /d_rho (is_derive_unique _ _ _ (d_rho_slope a g r)).
apply: gradient_of_type pairs_other; rewrite /three; first by rewrite ij (negbTE out).
  by move=> k m; case: ifP => _; [|case: ifP => _]; [right|right|left].
move=> k m; case: (boolP (k == m)) => [_ /esym /R1_neq_R0 //|km]; case: ifP => [_ /esym /R1_neq_R0 //|out_km _].
by apply: gradient_equal; rewrite ?ij ?(negbTE km) ?(negbTE out) ?out_km.
Qed.

(* Gradient descent on A (off its diagonal) and v together, and on the three numbers. *)
Fixpoint train (eta : nat -> R) (A : matrix) (v : vector) (t : nat) : matrix * vector :=
  match t with
  | 0%N => (A, v)
  | S s => let: (B, z) := train eta A v s in
      (step (eta s) B z, fun k => z k - eta s * gradient_vector B z k)
  end.

Fixpoint reduced (eta : nat -> R) (a g r : R) (t : nat) : R * R * R :=
  match t with
  | 0%N => (a, g, r)
  | S s => let: (a', g', r') := reduced eta a g r s in
      (a' - eta s * d_alpha a' g' r',
       g' - eta s * (d_gamma a' g' r' / (D * (INR C - 1))),
       r' - eta s * (d_rho a' g' r' / (D * (D - INR C))))
  end.

Theorem reduction eta a g r t :
  let: (a', g', r') := reduced eta a g r t in
  train eta (three beta g r) (along a) t = (three beta g' r', along a').
Proof.
elim: t => [|t] //=; case: (reduced eta a g r t) => [[a' g'] r'] ->; congr (_, _).
  apply: functional_extensionality => i; apply: functional_extensionality => j; rewrite /step.
  case: ifP => [ij|/negbT ij]; first by rewrite /three ij.
  have [in_set|out] := boolP (i.1 == j.1).
    by rewrite gradient_same // /three (negbTE ij) in_set.
  by rewrite gradient_other // /three (negbTE ij) (negbTE out).
apply: functional_extensionality => k; rewrite gradient_vector_slope slope_along.
rewrite /d_alpha (is_derive_unique _ _ _ (d_alpha_slope a' g' r')) /along.
have -> : inner (fun m => if m == k then 1 else 0) w = w k.
  rewrite /inner (bigD1 k) //= eqxx big1 => [|m /negbTE ->]; by ring.
by ring.
Qed.

End Reduction.

End Model.

Print Assumptions lemma_4_1.
Print Assumptions reduction.
