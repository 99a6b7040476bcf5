(* Sums over any number of sets, from identities of one set (symbolic/positional/all_sets.py).

   A set is an element of any type, its contribution f a real number that may depend on the
   order parameter t. The lemmas hold for every finite list of sets. *)
From Coq Require Import Reals List.
From Coquelicot Require Import Coquelicot.
Local Open Scope R_scope.

Section AllSets.

Variable set : Type.

Fixpoint total (f : set -> R) (sets : list set) : R :=
  match sets with
  | nil => 0
  | x :: rest => f x + total f rest
  end.

(* Summands that agree at each set have the same sum: the derivative of a sum over the sets. *)
Lemma derivative_of_sum (F : set -> R -> R) (f : set -> R) (t : R) (sets : list set) :
  (forall x, is_derive (F x) t (f x)) ->
  is_derive (fun u => total (fun x => F x u) sets) t (total f sets).
Proof.
intros each; induction sets as [|x rest IH]; simpl.
- exact (is_derive_const 0 t).
- exact (is_derive_plus (F x) _ t (f x) _ (each x) IH).
Qed.

(* The increment at one image: the signal set, and the random sets, with a common factor c. *)
Lemma increment_of_sum (G : R -> R) (g : R) (F : set -> R -> R) (f : set -> R) (c t : R)
    (sets : list set) :
  is_derive (fun u => c * G u) t g -> (forall x, is_derive (fun u => c * F x u) t (f x)) ->
  is_derive (fun u => c * (G u + total (fun x => F x u) sets)) t (g + total f sets).
Proof.
intros signal each.
assert (scaled : forall h, c * total h sets = total (fun x => c * h x) sets).
{ intros h; induction sets as [|x rest IH]; simpl; [ring | rewrite <- IH; ring]. }
apply (is_derive_ext (fun u => c * G u + total (fun x => c * F x u) sets)).
{ intros u; rewrite Rmult_plus_distr_l, scaled; reflexivity. }
exact (is_derive_plus _ _ t _ _ signal (derivative_of_sum _ _ t sets each)).
Qed.

(* Contributions C k_0 + n k_1 have the sum D k_0 + T k_1 over L = D / C sets. *)
Lemma affine_sum (f n : set -> R) (C D T k_0 k_1 : R) (sets : list set) :
  (forall x, f x = C * k_0 + n x * k_1) -> D = INR (length sets) * C -> T = total n sets ->
  total f sets = D * k_0 + T * k_1.
Proof.
intros each -> ->; induction sets as [|x rest IH].
- simpl; ring.
- change (f x + total f rest = INR (S (length rest)) * C * k_0 + (n x + total n rest) * k_1).
  rewrite each, IH, S_INR; ring.
Qed.

End AllSets.

Print Assumptions increment_of_sum.
Print Assumptions affine_sum.
