"""Usual names of columns in English, German, French and Spanish, without accents.

Only names that say what a column holds are listed. Columns with other names are recognised by
content, if that is unambiguous.
"""

from __future__ import annotations

# Strongest first: in a file with both `item` and `id`, `item` names the item.
_ROLES = {
    "item": """
        item task image photo picture example sample instance question document doc object unit
        aufgabe bild foto beispiel dokument objekt
        tache exemple
        tarea imagen ejemplo documento
        filename file path dateiname datei fichier archivo fichero url hit id
    """,
    "annotator": """
        annotator worker rater labeler labeller coder reader judge expert user performer participant
        annotierer annotatorin bearbeiter bewerter gutachter nutzer benutzer
        annotateur annotatrice evaluateur juge utilisateur
        anotador anotadora evaluador evaluadora juez usuario
    """,
    "label": """
        label class answer response annotation category judgement judgment choice vote rating
        klasse antwort kategorie bewertung urteil etikett
        etiquette classe reponse categorie jugement choix
        etiqueta clase respuesta anotacion categoria juicio voto
    """,
    "truth": """
        truth ground_truth groundtruth gold gold_label gt true_label true_class
        wahrheit grundwahrheit goldstandard
        verite verite_terrain
        verdad
    """,
    "text": """
        text sentence review tweet comment message post content body utterance passage paragraph
        abstract headline title prompt question
        satz kommentar nachricht beitrag inhalt
        texte phrase commentaire contenu
        texto frase comentario mensaje contenido
    """,
}
USUAL_NAMES = {role: names.split() for role, names in _ROLES.items()}

# Names of the item that are as usual for row numbers and addresses: they count only if the names of
# the other columns are usual too.
WEAK_NAMES = ("url", "id")

_CLASSES = """
    label class category klasse kategorie etikett
    etiquette classe categorie etiqueta clase categoria
"""
# `annotation_id` numbers the rows, whereas `class_id` is a class.
ROW_NUMBERS = frozenset(
    f"{name}_id" for name in USUAL_NAMES["label"] if name not in _CLASSES.split()
)

_OTHERS = """
    confidence certainty probability duration seconds lead_time time timestamp date created_at
    updated_at remark remarks rationale explanation
    konfidenz dauer sekunden zeit zeitstempel datum bemerkung anmerkung begrundung
    confiance certitude duree secondes temps horodatage remarque justification
    confianza certeza duracion segundos tiempo fecha hora observacion observaciones justificacion
"""
# What is known of a label or a row: never recognised by content as item, annotator or label.
OTHER_NAMES = frozenset(_OTHERS.split())
