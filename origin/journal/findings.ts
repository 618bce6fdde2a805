/** How often a start met each row of FORMAT.md's recovery table that lets it go on. */
export interface Findings {
  /** No segments and no manifest. */
  readonly empty: number;
  /** A manifest and no segment yet: a crash while creating. */
  readonly creating: number;
  /** Chains that reach SEAL. */
  readonly sealed: number;
  /** Nothing behind the last accepted batch of the active segment. */
  readonly cleanEnd: number;
  /** Something behind it that was never acknowledged. */
  readonly crashTail: number;
  /** Active segment without a batch. */
  readonly activeEmpty: number;
  /** Every segment ends with SEAL, or the active one does and its successor was found: a crash during a rotation. */
  readonly midRotation: number;
  /** Segments made ahead. */
  readonly spares: number;
  /** Segments below the head, from a crash during a trim. */
  readonly belowHead: number;
}

export function noFindings(): Findings {
  return {
    empty: 0,
    creating: 0,
    sealed: 0,
    cleanEnd: 0,
    crashTail: 0,
    activeEmpty: 0,
    midRotation: 0,
    spares: 0,
    belowHead: 0,
  };
}
